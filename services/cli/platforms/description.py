"""A platform as plain data, for tables and for `--json`."""

from __future__ import annotations

import math
from typing import Any

from shared.domain.hardware.platform import DeviceType
from shared.domain.spec import RunSpec
from shared.platforms.platform_file import PlatformFile

# What a device has that its entry may leave out.
FIGURES = ("memory_mb", "bandwidth_mb_s", "speed", "watts", "idle_watts", "dollars_per_s")


def describe(platform: PlatformFile) -> dict[str, Any]:
    fields = platform.spec_fields()
    cluster = RunSpec.parse(fields).platform
    curves = platform.times
    return {
        "name": platform.name,
        "description": platform.description,
        "sources": list(platform.sources),
        "assumed": list(platform.assumed),
        "types": [_type(platform, device_type) for device_type in cluster.types],
        "devices": len(cluster),
        "nodes": len(cluster.node_names),
        "measured": {
            "kinds": len({curve.kind for curve in curves}),
            "curves": len(curves),
            "points": sum(len(curve.sizes) for curve in curves),
        }
        if curves
        else None,
        "spec": fields,
    }


def _type(platform: PlatformFile, device_type: DeviceType) -> dict[str, Any]:
    entries = [each for each in platform.cluster.devices if each.type == device_type.name]
    fields_set = entries[0].model_fields_set if entries else set()
    full_speed = device_type.speed * (1 + device_type.speedup_slope)
    return {
        "type": device_type.name,
        "count": device_type.count,
        "nodes": list(dict.fromkeys(entry.node for entry in entries)),
        "accelerator": device_type.accelerator,
        "memory_mb": _finite(device_type.memory_mb),
        "bandwidth_mb_s": _finite(device_type.bandwidth_mb_s),
        "speed": [device_type.speed, full_speed],
        "watts": device_type.watts,
        "idle_watts": device_type.idle_watts,
        "dollars_per_s": device_type.dollars_per_s,
        "measured": any(curve.type == device_type.name for curve in platform.times),
        "assumed": [name for name in FIGURES if name not in fields_set],
    }


def _finite(value: float) -> float | None:
    """None: unlimited, which JSON cannot say."""
    return value if math.isfinite(value) else None
