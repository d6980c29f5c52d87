"""The names of the devices that worked on a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shared.domain.hardware.platform import NOWHERE, Platform
from shared.domain.tasks import Integers


def device_names(row: Mapping[str, Any], platform: Platform) -> dict[str, str | None]:
    """The accelerator and the CPU of a result, each None unless it ran a part."""
    device = row["device"] if row["gpu_time"] > 0 else NOWHERE
    cpu = NOWHERE
    if row["cpu_time"] > 0:
        cpu = int(cpus_of(np.array([row["cpu"]]), np.array([row["task_id"]]), platform)[0])
    return {"device_name": _name(device, platform), "cpu_name": _name(cpu, platform)}


def cpus_of(cpu: Integers, task_id: Integers, platform: Platform) -> Integers:
    """The CPU of each result; versions before 0.3 stored none and took them in rotation."""
    rotation = platform.cpu_beside(np.full(len(cpu), NOWHERE), task_id)
    return np.where(cpu == NOWHERE, rotation, cpu)


def _name(device: int, platform: Platform) -> str | None:
    return None if device == NOWHERE else platform.device_names([device])[0]
