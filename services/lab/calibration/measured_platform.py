"""A measured platform from samples of kernels: curves, bandwidth, what dispatching takes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from services.lab.calibration.devices import DeviceKind
from services.lab.calibration.measure import Effort, Sample
from services.lab.experiments.provenance import cpu_model
from services.lab.platforms.imported import Imported
from shared.domain.hardware.measured_times import Curve

# A larger spread of repetitions than this means that the machine was busy.
BUSY = 0.2


def measured_platform(
    devices: Sequence[DeviceKind], samples: Sequence[Sample], effort: Effort, name: str
) -> Imported:
    entries, assumed = [], []
    for device in devices:
        own = [sample for sample in samples if sample.type == device.type]
        entry = {**device.entry, **(_bandwidth(own) if _copies(device) else {}), **_watts(own)}
        entries.append(entry)
        assumed += [
            f"{field} of {device.type}: the default"
            for field in ("watts", "dollars_per_s", *(["memory_mb"] if _copies(device) else []))
            if field not in entry
        ]
    curves = tuple(_curves(devices, samples))
    repeats = min(min(curve.counts) for curve in curves)
    return Imported(
        {
            "name": name,
            "description": f"{cpu_model()}; kernels measured for real runs.",
            "sources": [
                f"`hybrid profile --real` at {datetime.now(UTC):%Y-%m-%d %H:%M} UTC: {repeats} or "
                "more measurements of each size, all devices at work at the same time",
                *_dispatch(devices, samples),
            ],
            "cluster": {"devices": entries},
            "physics": {
                "noise": "measured",
                "memory_mb_per_size": effort.memory_mb_per_size,
            },
        },
        curves=curves,
        assumed=assumed,
    )


def warnings(curves: Sequence[Curve]) -> Iterator[str]:
    unsteady = [
        f"{curve.kind} on {curve.type} ±{statistics.median(curve.deviations):.0%}"
        for curve in curves
        if statistics.median(curve.deviations) > BUSY
    ]
    if unsteady:
        yield f"repetitions differ, the machine was busy: {', '.join(unsteady)}"


def _curves(devices: Sequence[DeviceKind], samples: Sequence[Sample]) -> Iterator[Curve]:
    seconds: dict[tuple[str, str], dict[float, list[float]]] = {}
    for sample in samples:
        of_curve = seconds.setdefault((sample.kind, sample.type), {})
        of_curve.setdefault(sample.size, []).append(sample.seconds)
    for (kind, type_), by_size in sorted(seconds.items()):
        sizes = sorted(by_size)
        means = [statistics.mean(by_size[size]) for size in sizes]
        deviations = [
            statistics.stdev(by_size[size]) / mean for size, mean in zip(sizes, means, strict=True)
        ]
        yield Curve(
            kind=kind,
            type=type_,
            sizes=tuple(sizes),
            seconds=tuple(_digits(mean) for mean in means),
            deviations=tuple(_digits(deviation) for deviation in deviations),
            counts=tuple(len(by_size[size]) for size in sizes),
        )


def _bandwidth(samples: Sequence[Sample]) -> dict[str, Any]:
    """All that the measured tasks copied, divided by the time that it took."""
    megabytes = sum(sample.memory_mb for sample in samples)
    return {"bandwidth_mb_s": _digits(megabytes / sum(each.transfer_s for each in samples))}


def _watts(samples: Sequence[Sample]) -> dict[str, Any]:
    joules = [sample.energy_j for sample in samples if sample.energy_j is not None]
    if not joules:
        return {}
    seconds = sum(each.seconds + each.transfer_s for each in samples if each.energy_j is not None)
    return {"watts": _digits(sum(joules) / seconds)}


def _copies(device: DeviceKind) -> bool:
    return any(setting.copy for setting in device.settings)


def _dispatch(devices: Sequence[DeviceKind], samples: Sequence[Sample]) -> Iterator[str]:
    for device in devices:
        each = [sample.dispatch_s for sample in samples if sample.type == device.type]
        yield (
            f"dispatching a task to {device.type} takes {statistics.median(each) * 1e3:.2g} ms "
            f"(median; mean {statistics.mean(each) * 1e3:.2g} ms), which the times include"
        )


def _digits(value: float) -> float:
    """More digits would be noise."""
    return float(f"{value:.4g}")
