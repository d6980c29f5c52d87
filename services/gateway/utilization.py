"""How busy each device of one scheduler's virtual cluster was, over simulated time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, Field

from services.gateway.shapes import example
from shared.spec import RunSpec
from shared.tasks import Floats

BUCKETS = 30


class Device(BaseModel):
    name: str = Field(examples=["gpu_0"])
    utilization: float = Field(description="share of the whole window, 0..1")
    busy: list[float] = Field(description="share of each step, 0..1")


class Utilization(BaseModel):
    """The window ends where the scheduler's newest task arrived."""

    model_config = example(
        run="1116-081502-6a1f",
        scheduler="greedy",
        start=39.8,
        end=99.8,
        step=2.0,
        average=0.17,
        devices=[{"name": "cpu_0", "utilization": 0.46, "busy": [0.2, 1.0, 0.4]}],
    )

    run: str
    scheduler: str
    start: float = Field(description="seconds of simulated time")
    end: float
    step: float
    average: float
    devices: list[Device]


def utilization(
    run: str, scheduler: str, spec: RunSpec, start: float, end: float, parts: pa.Table
) -> Utilization:
    edges = np.linspace(start, end, BUCKETS + 1)
    cpu = _column(parts, "task_id").astype(np.int64) % spec.cluster.cpus
    gpu = _column(parts, "gpu").astype(np.int64)
    devices = []
    for kind, count, device in (("cpu", spec.cluster.cpus, cpu), ("gpu", spec.cluster.gpus, gpu)):
        begin, length = _column(parts, f"{kind}_start"), _column(parts, f"{kind}_time")
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
    """The share of each step between edges that parts of a device take; they never overlap."""
    worked = np.array([np.clip(edge - begin, 0.0, length).sum() for edge in edges])
    step = np.diff(edges)
    spent = np.divide(np.diff(worked), step, out=np.zeros(len(step)), where=step > 0)
    return np.asarray(np.clip(spent, 0.0, 1.0))


def _column(parts: pa.Table, name: str) -> Floats:
    return np.asarray(parts.column(name).to_numpy(), dtype=np.float64)
