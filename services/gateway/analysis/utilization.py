"""How busy each device of one scheduler's virtual cluster was, over simulated time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from services.gateway.analysis.schemas import Device, Utilization
from services.gateway.analysis.task_window import floats
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats

BUCKETS = 30


def utilization(
    run: str, scheduler: str, spec: RunSpec, start: float, end: float, parts: pa.Table
) -> Utilization:
    edges = np.linspace(start, end, BUCKETS + 1)
    cpu = floats(parts, "task_id").astype(np.int64) % spec.cluster.cpus
    gpu = floats(parts, "gpu").astype(np.int64)
    devices = []
    for kind, count, device in (("cpu", spec.cluster.cpus, cpu), ("gpu", spec.cluster.gpus, gpu)):
        begin, length = floats(parts, f"{kind}_start"), floats(parts, f"{kind}_time")
        for number in range(count):
            own = device == number
            busy = shares(begin[own], length[own], edges)
            mean = float(busy.mean())
            devices.append(Device(name=f"{kind}_{number}", utilization=mean, busy=busy.tolist()))
    average = sum(device.utilization for device in devices) / len(devices)
    return Utilization(
        run=run,
        scheduler=scheduler,
        start=start,
        end=end,
        step=(end - start) / BUCKETS,
        average=average,
        devices=devices,
    )


def shares(begin: Floats, length: Floats, edges: Floats) -> Floats:
    """The share of each step between edges that a device's parts take; parts never overlap."""
    worked = np.array([np.clip(edge - begin, 0.0, length).sum() for edge in edges])
    step = np.diff(edges)
    spent = np.divide(np.diff(worked), step, out=np.zeros(len(step)), where=step > 0)
    return np.asarray(np.clip(spent, 0.0, 1.0))
