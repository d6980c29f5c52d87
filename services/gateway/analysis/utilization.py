"""How busy each device of one scheduler's virtual cluster was, over simulated time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from services.gateway.analysis.schemas import MeterUtilization, Utilization
from services.gateway.analysis.task_window import floats
from services.gateway.tasks.device_names import cpus_of
from shared.domain.platform import Platform
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Integers

BUCKETS = 30
DIGITS = 6  # of a share


def utilization(
    run: str, scheduler: str, spec: RunSpec, start: float, end: float, parts: pa.Table
) -> Utilization:
    edges = np.linspace(start, end, BUCKETS + 1)
    platform = spec.platform
    begin, length, meter = _work(parts, platform)
    count = np.array([meter.devices for meter in platform.meters])
    busy = shares(begin, length, meter, edges, count)
    mean = busy.mean(axis=1)
    return Utilization(
        run=run,
        scheduler=scheduler,
        start=start,
        end=end,
        step=(end - start) / BUCKETS,
        average=float(np.average(mean, weights=count)),
        devices=[
            MeterUtilization(
                name=meter.name,
                type=meter.type,
                node=meter.node,
                devices=meter.devices,
                utilization=used,
                busy=row,
            )
            for meter, used, row in zip(
                platform.meters, mean.tolist(), busy.round(DIGITS).tolist(), strict=True
            )
        ],
    )


def _work(parts: pa.Table, platform: Platform) -> tuple[Floats, Floats, Integers]:
    """When each part of a task began on each of its devices, how long it took, and the meter."""
    task_id, device, cpu, width = (
        floats(parts, name).astype(np.int64) for name in ("task_id", "device", "cpu", "width")
    )
    begin = np.concatenate((floats(parts, "gpu_start"), floats(parts, "cpu_start")))
    length = np.concatenate((floats(parts, "gpu_time"), floats(parts, "cpu_time")))
    chosen = np.concatenate((device, cpus_of(cpu, task_id, platform)))
    width = np.concatenate((width, width))
    worked = length > 0
    begin, length, chosen, width = begin[worked], length[worked], chosen[worked], width[worked]
    wide = width > 1
    if not wide.any():
        return begin, length, platform.meter_of[chosen]
    # A wide task works on several devices at once: a row for each of them.
    gangs, which = np.unique(np.stack((chosen[wide], width[wide])), axis=1, return_inverse=True)
    members = [platform.gang(int(first), int(size)) for first, size in gangs.T]
    rows = np.concatenate((np.flatnonzero(~wide), np.repeat(np.flatnonzero(wide), width[wide])))
    devices = np.concatenate((chosen[~wide], *(members[number] for number in which.ravel())))
    return begin[rows], length[rows], platform.meter_of[devices.astype(np.int64)]


def shares(
    begin: Floats, length: Floats, meter: Integers, edges: Floats, devices: NDArray[np.integer]
) -> Floats:
    """By meter and step between edges: the share that the parts on the meter's devices take. On
    one device they never overlap."""
    worked = np.stack(
        [
            np.bincount(meter, np.clip(edge - begin, 0.0, length), minlength=len(devices))
            for edge in edges
        ],
        axis=1,
    )
    step = np.outer(devices, np.diff(edges))
    spent = np.divide(np.diff(worked, axis=1), step, out=np.zeros(step.shape), where=step > 0)
    return np.asarray(np.clip(spent, 0.0, 1.0))
