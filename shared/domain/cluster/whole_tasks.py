"""What becomes of each task if it is given, whole, to each of the devices.

A task that does not fit the memory of an accelerator may run on a CPU instead, and one that fails
is charged: `physics.price` says so. Devices of one type in one node differ in nothing else, so they
share a column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shared.domain.hardware.platform import NOWHERE, Platform
from shared.domain.physics import Price, price, whole_seconds
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Integers, Tasks
from shared.domain.times import seconds


@dataclass(frozen=True, slots=True)
class WholePrice:
    """The price of each task on any device of one group."""

    price: Price
    expected: Floats  # seconds on the device itself; infinite: it cannot run there
    instead: Integers  # the device that runs it then; NOWHERE: the device itself does


def groups_of(platform: Platform) -> tuple[Integers, Integers]:
    """The group of each device, and the first device of each group."""
    key = platform.type_of * len(platform.node_names) + platform.node_of
    _, first, group_of = np.unique(key, return_index=True, return_inverse=True)
    return group_of.astype(np.int64), first.astype(np.int64)


def whole_prices(tasks: Tasks, spec: RunSpec) -> list[WholePrice]:
    """For each group of devices."""
    _, first = groups_of(spec.platform)
    expected = whole_seconds(tasks, spec, seconds(tasks, spec))
    return [
        _price_on(device, tasks, spec, expected[:, spec.platform.type_of[device]])
        for device in first.tolist()
    ]


def _price_on(device: int, tasks: Tasks, spec: RunSpec, expected: Floats) -> WholePrice:
    share, accelerators, cpus = placement(device, len(tasks), spec.platform)
    accelerators, cpus = spec.platform.complete(tasks.task_id, share, accelerators, cpus)
    priced = price(tasks, share, spec, accelerators, cpus)
    runs_on = np.where(priced.gpu_time > 0, accelerators, cpus)
    return WholePrice(priced, expected, np.where(runs_on == device, NOWHERE, runs_on))


def placement(device: int, count: int, platform: Platform) -> tuple[Floats, Integers, Integers]:
    """The share, the accelerator and the CPU of decisions that give whole tasks to a device."""
    nowhere, chosen = np.full(count, NOWHERE), np.full(count, device)
    if platform.types[platform.type_of[device]].accelerator:
        return np.ones(count), chosen, nowhere
    return np.zeros(count), nowhere, chosen
