"""Measures the kernels on the devices of this machine, through the same processes as a real run.

All devices work at the same time, as they do in a run: they share caches and the memory bus. Each
goes through all kinds and sizes again and again, each time in a new random order, so that a drift
of the machine affects all of them equally.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import numpy as np

from services.lab.calibration.devices import DeviceKind
from shared.errors import ArenaError
from shared.execution.device_process import DeviceProcess, Measured, Work
from shared.execution.kernels import KERNELS
from shared.execution.settings import Limits

FEWEST = 3  # measurements of each kind and size
LARGEST_SIZE = 16_384  # of a kernel that is too fast to be measured with larger ones
INTENSITY = 0.5  # that of all generated tasks of a measured platform

ReportProgress = Callable[[str, float], None]


class CalibrationError(ArenaError):
    """The devices cannot be measured."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What is measured, and for how long; every measurement is repeated at least three times."""

    seconds: float = 60
    kinds: tuple[str, ...] = tuple(KERNELS)
    sizes: int = 6  # of each kind, in equal steps of their logarithm
    # On the slowest device tasks last from the shortest to the longest.
    shortest_s: float = 0.02
    longest_s: float = 0.8
    memory_mb_per_size: float = 0.2  # three operands


@dataclass(frozen=True, slots=True)
class Sample:
    type: str
    kind: str
    size: float
    memory_mb: float
    seconds: float  # without the transfer
    transfer_s: float
    dispatch_s: float  # of the seconds
    energy_j: float | None


async def measure(
    devices: Sequence[DeviceKind],
    effort: Effort,
    report: ReportProgress = lambda what, share: None,
    limits: Limits | None = None,
    seed: int = 1,
) -> list[Sample]:
    limits = limits or Limits()
    async with AsyncExitStack() as stack:
        processes: list[tuple[str, DeviceProcess]] = []
        for device in devices:
            for setting in device.settings:
                process = DeviceProcess(setting, limits)
                stack.push_async_callback(process.stop)
                try:
                    await process.start()
                except RuntimeError as error:
                    raise CalibrationError(f"device {device.type}: {error}") from None
                processes.append((device.type, process))
        points = []
        for number, kind in enumerate(effort.kinds):
            report(f"{kind}: which sizes", 0.2 * number / len(effort.kinds))
            for size in await _sizes(kind, processes, effort):
                points.append((kind, size))
        return await _interleaved(points, processes, effort, report, seed)


async def _sizes(
    kind: str, processes: Sequence[tuple[str, DeviceProcess]], effort: Effort
) -> list[float]:
    """From the size that the slowest device runs in `shortest_s` to the one for `longest_s`."""
    low = high = size = 1.0
    while size <= LARGEST_SIZE:
        slowest = max(
            [await _once(type_, process, kind, size, effort) for type_, process in processes]
        )
        if slowest < effort.shortest_s:
            low = size
        if slowest > effort.longest_s and size > 1:
            break
        high = size
        size *= 2
    sizes = np.geomspace(low, max(high, 2 * low), effort.sizes)
    return [float(f"{each:.3g}") for each in sizes]


async def _once(
    type_: str, process: DeviceProcess, kind: str, size: float, effort: Effort
) -> float:
    """Seconds of the better of two measurements: the first one may make inputs, or fill caches."""
    samples = [
        await _sample(type_, process, kind, size, effort.memory_mb_per_size) for _ in range(2)
    ]
    return min(each.seconds + each.transfer_s for each in samples)


async def _interleaved(
    points: Sequence[tuple[str, float]],
    processes: Sequence[tuple[str, DeviceProcess]],
    effort: Effort,
    report: ReportProgress,
    seed: int,
) -> list[Sample]:
    samples: list[Sample] = []
    began = time.monotonic()
    unfinished = set(range(len(processes)))

    async def work(number: int) -> None:
        """Until the time is over and all devices have measured enough."""
        type_, process = processes[number]
        order = random.Random(seed + number)
        rounds = 0
        while unfinished or time.monotonic() - began < effort.seconds:
            for kind, size in order.sample(points, len(points)):
                if not unfinished and time.monotonic() - began >= effort.seconds:
                    return
                samples.append(await _sample(type_, process, kind, size, effort.memory_mb_per_size))
                share = (time.monotonic() - began) / effort.seconds
                report("kernels on all devices", 0.2 + 0.8 * min(share, 0.99))
            rounds += 1
            if rounds == FEWEST:
                unfinished.discard(number)

    async with asyncio.TaskGroup() as group:
        for number in range(len(processes)):
            group.create_task(work(number))
    report("done", 1)
    return samples


async def _sample(
    type_: str, process: DeviceProcess, kind: str, size: float, memory_mb_per_size: float
) -> Sample:
    memory_mb = size * memory_mb_per_size
    measured = await process.run(Work(kind, size, memory_mb, INTENSITY))
    if measured.failure is not None:
        raise CalibrationError(f"{kind} of size {size:g} on {type_}: {measured.failure}")
    return _of(type_, kind, size, memory_mb, measured)


def _of(type_: str, kind: str, size: float, memory_mb: float, measured: Measured) -> Sample:
    return Sample(
        type_,
        kind,
        size,
        memory_mb,
        measured.ended - measured.started - measured.transfer_s,
        measured.transfer_s,
        measured.dispatch_s,
        measured.energy_j,
    )
