"""A timeline of devices: which task ran where and when, in one stretch of simulated time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from services.gateway.analysis.device_work import Work
from services.gateway.analysis.schemas import (
    Timeline,
    TimelineBlocks,
    TimelineDevice,
    TimelineParts,
)
from services.gateway.analysis.utilization import shares
from shared.domain.hardware.platform import Platform
from shared.domain.tasks import Bools, Floats, Integers
from shared.errors import NotFound

# More parts than this are not drawn one by one but added up in steps.
MOST_BARS = 5000
STEPS = 240
DECISIONS = 3  # whole on an accelerator, whole on a CPU, on both
DIGITS = 3  # of a share in a block


@dataclass(frozen=True, slots=True)
class Rows:
    """The devices that are shown."""

    devices: Integers
    offset: int
    matching: int


def choose_rows(
    platform: Platform, kind: str | None, node: str | None, offset: int, most: int
) -> Rows:
    """A page of the devices of one type and node; None: of all."""
    chosen: Bools = np.ones(len(platform), bool)
    if kind is not None:
        names = [each.name for each in platform.types]
        if kind not in names:
            raise NotFound(f"the cluster has no device type {kind}; it has {', '.join(names)}")
        chosen &= platform.type_of == names.index(kind)
    if node is not None:
        if node not in platform.node_names:
            raise NotFound(f"the cluster has no node {node}")
        chosen &= platform.node_of == platform.node_names.index(node)
    matching = np.flatnonzero(chosen)
    return Rows(matching[offset : offset + most], offset, len(matching))


def timeline(
    run: str,
    scheduler: str,
    platform: Platform,
    rows: Rows,
    stretch: tuple[float, float],
    clock: float,
    makespan: float,
    work: Work,
) -> Timeline:
    start, end = stretch
    shown = work.on(rows.devices) if len(rows.devices) else work.on(np.array([len(platform)]))
    accelerator = np.isin(rows.devices, platform.accelerators)
    decision = np.where(shown.split, 2, np.where(accelerator[shown.device], 0, 1))
    few = len(shown.task_id) <= MOST_BARS
    return Timeline(
        run=run,
        scheduler=scheduler,
        start=start,
        end=end,
        clock=clock,
        makespan=makespan,
        offset=rows.offset,
        matching=rows.matching,
        devices=_devices(shown, platform, rows.devices, start, end),
        complete=work.complete,
        parts=_parts(shown, decision) if few else None,
        blocks=None if few else _blocks(shown, decision, len(rows.devices), start, end),
    )


def _devices(
    shown: Work, platform: Platform, devices: Integers, start: float, end: float
) -> list[TimelineDevice]:
    one, edges = np.ones(len(devices), np.int64), np.array([start, end])
    busy = shares(shown.begin, shown.length, shown.device, edges, one)[:, 0]
    parts = np.bincount(shown.device, minlength=len(devices))
    return [
        TimelineDevice(
            name=name,
            type=platform.types[platform.type_of[device]].name,
            node=platform.node_names[platform.node_of[device]],
            parts=int(parts[row]),
            busy=float(busy[row]),
        )
        for row, (device, name) in enumerate(
            zip(devices, platform.device_names(devices.tolist()), strict=True)
        )
    ]


def _parts(shown: Work, decision: Integers) -> TimelineParts:
    order = np.argsort(shown.begin, kind="stable")
    return TimelineParts(
        row=shown.device[order].tolist(),
        task_id=shown.task_id[order].tolist(),
        begin=shown.begin[order].tolist(),
        end=shown.end[order].tolist(),
        decision=decision[order].tolist(),
        size=_or_none(shown.size[order]),
        failed=shown.failed[order].tolist(),
    )


def _blocks(
    shown: Work, decision: Integers, devices: int, start: float, end: float
) -> TimelineBlocks:
    edges = np.linspace(start, end, STEPS + 1)
    group = decision * devices + shown.device
    one = np.ones(DECISIONS * devices, np.int64)
    busy = shares(shown.begin, shown.length, group, edges, one)
    busy = busy.reshape(DECISIONS, devices, STEPS)
    return TimelineBlocks(
        busy=busy.round(DIGITS).tolist(),
        size=[_or_none(row) for row in _mean_sizes(shown, edges, devices)],
    )


def _mean_sizes(shown: Work, edges: Floats, devices: int) -> Floats:
    """The mean size of tasks by device and step; NaN where the device is idle."""
    known = np.isfinite(shown.size)
    device, size = shown.device[known], shown.size[known]
    total, weighted = (
        np.stack(
            [
                np.bincount(device, weight * done, minlength=devices)
                for done in (
                    np.clip(edge - shown.begin[known], 0.0, shown.length[known]) for edge in edges
                )
            ],
            axis=1,
        )
        for weight in (np.ones(len(size)), size)
    )
    worked, sizes = np.diff(total, axis=1), np.diff(weighted, axis=1)
    mean = np.full(worked.shape, np.nan)
    np.divide(sizes, worked, out=mean, where=worked > 1e-12)
    return mean


def _or_none(values: Floats) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]
