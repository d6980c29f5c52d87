"""The devices of this machine that a measured platform consists of."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from services.lab.profiling.gpu import find_device
from shared.errors import SpecError
from shared.execution.settings import DeviceSetting, settings_of
from shared.platforms.platform_file import PlatformFile


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """Equal devices: their entry in `cluster.devices`, and what each of them is on this machine."""

    entry: dict[str, Any]
    settings: tuple[DeviceSetting, ...]

    @property
    def type(self) -> str:
        return str(self.entry["type"])


def devices_of(platform: PlatformFile) -> list[DeviceKind]:
    """The devices of a platform file. Each must have a `real` block: what it is on this machine."""
    entries = platform.model_dump(mode="json", exclude_unset=True)["cluster"].get("devices", [])
    without = [entry["type"] for entry in entries if not entry.get("real")]
    if without or not entries:
        raise SpecError(
            [f"platform {platform.name}: no `real` block of {', '.join(without) or 'any device'}; "
             "it says what the device is on this machine (docs/platforms.md)"]
        )  # fmt: skip
    return [_kind(entry) for entry in entries]


def devices_of_this_machine() -> list[DeviceKind]:
    """The GPUs that torch finds, and the other cores as one CPU. Without a GPU, two unequal CPU
    devices: a core with plain kernels, and one with BLAS that data has to be copied to."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SpecError(["two devices need two cores, and this machine has one for this program"])
    gpu = find_device()
    if gpu is None:
        plain = {"cores": cores[:1], "library": "plain"}
        blas = {"cores": cores[1:2], "library": "blas", "copy": True}
        return [
            _kind({"type": "blas", "accelerator": True, "real": blas}),
            _kind({"type": "cpu", "real": plain}),
        ]
    if gpu.count >= len(cores):
        raise SpecError([f"{gpu.count} GPUs and a CPU need a core each; there are {len(cores)}"])
    hosts, rest = cores[: gpu.count], cores[gpu.count :]
    on_gpu = {"cores": hosts, "library": f"torch:{gpu.backend}", "copy": True}
    entry = {"type": gpu.backend, "count": gpu.count, "memory_mb": gpu.memory_mb, "real": on_gpu}
    on_cpu = {"cores": rest, "library": "blas"}
    return [_kind(entry), _kind({"type": "cpu", "real": on_cpu})]


def _kind(entry: dict[str, Any]) -> DeviceKind:
    return DeviceKind(entry, tuple(settings_of(entry["real"], int(entry.get("count", 1)))))
