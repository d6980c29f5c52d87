"""What sources of measured times lack: the memory and power of a device, from the vendor's data
sheet if we know the device, else the arena's defaults."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shared.domain.hardware.cluster_spec import Device


@dataclass(frozen=True, slots=True)
class DataSheet:
    product: str
    memory_mb: float
    watts: float


DATA_SHEETS = {
    "k40m": DataSheet("NVIDIA Tesla K40m", 12_000, 235),
    "k80": DataSheet("NVIDIA Tesla K80, one of its two GPUs", 12_000, 150),
    "p100": DataSheet("NVIDIA Tesla P100 (PCIe, 16 GB)", 16_000, 250),
    "v100": DataSheet("NVIDIA Tesla V100 (SXM2, 16 GB)", 16_000, 300),
    "t4": DataSheet("NVIDIA T4", 16_000, 70),
    "a10": DataSheet("NVIDIA A10", 24_000, 150),
    "a100": DataSheet("NVIDIA A100 (SXM, 40 GB)", 40_000, 400),
    "h100": DataSheet("NVIDIA H100 (SXM, 80 GB)", 80_000, 700),
}

FROM_SHEET = ("memory_mb", "watts")
OF_ACCELERATORS = ("memory_mb", "bandwidth_mb_s")


def describe(device_type: str, **known: Any) -> dict[str, Any]:
    """A device entry with what is known, else with what the data sheet says."""
    sheet = DATA_SHEETS.get(device_type.lower())
    entry: dict[str, Any] = {"type": device_type, "count": 1}
    if sheet is not None:
        entry |= {"memory_mb": sheet.memory_mb, "watts": sheet.watts}
    return entry | known


def assumptions(known: Mapping[str, Collection[str]]) -> Iterator[str]:
    """What stays assumed of devices whose `known` fields, by type, come from the source."""
    for device_type, fields in known.items():
        sheet = DATA_SHEETS.get(device_type.lower())
        taken = [name for name in FROM_SHEET if name not in fields]
        if sheet is not None and taken:
            values = " and ".join(f"{name} {getattr(sheet, name):g}" for name in taken)
            yield f"{values} of {device_type}: data sheet of {sheet.product}"
    for name in (*FROM_SHEET, "bandwidth_mb_s", "dollars_per_s"):
        default = [
            device_type
            for device_type, fields in known.items()
            if name not in fields
            and not (name in FROM_SHEET and device_type.lower() in DATA_SHEETS)
            and (name not in OF_ACCELERATORS or Device(type=device_type).is_accelerator)
        ]
        if default:
            yield f"{name} of {', '.join(default)}: the arena's default"
