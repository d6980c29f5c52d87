"""A scheduler's run after some batch: its cluster, its totals, and what comes next.

The simulator and the executor continue a run from the checkpoint in the last message on
`results.<run>.<scheduler>`, and add each batch to the totals in the same way.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from shared.domain.cluster.observation import Observation
from shared.domain.cluster.virtual_cluster import Cluster, Schedule
from shared.domain.hardware.platform import Platform
from shared.domain.physics import Price
from shared.domain.quantile_sketch import QuantileSketch
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Integers, Tasks
from shared.errors import Unreadable
from shared.messages.envelope import Envelope
from shared.messages.standing import Standing


@dataclass(slots=True)
class Checkpoint:
    spec: RunSpec
    cluster: Cluster
    standing: Standing
    sketch: QuantileSketch
    next_batch: int = 0
    # What the scheduler knows of its cluster; None: it does not look.
    observation: Observation | None = None

    @classmethod
    def new(cls, spec: RunSpec) -> Self:
        standing = Standing(busy=[0.0] * len(spec.platform.meters))
        return cls(spec, Cluster.idle(len(spec.platform)), standing, QuantileSketch())

    @classmethod
    def after(cls, spec: RunSpec, envelope: Envelope) -> Self:
        """The checkpoint in this envelope of results."""
        state = envelope.state
        if not isinstance(state, dict):
            raise Unreadable("results without a cluster state")
        try:
            cluster = Cluster.from_json(state["cluster"])
            standing = Standing.model_validate(state["standing"])
            # Versions before 0.2 had none: quantiles are of the tasks since then.
            sketch = QuantileSketch.from_json(state["sketch"]) if "sketch" in state else None
            saved = state.get("observation")
            observation = None if saved is None else Observation.from_json(saved)
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise Unreadable(f"the cluster state in the results is broken: {error!r}") from None
        platform = spec.platform
        if (len(cluster.free), len(standing.busy)) != (len(platform), len(platform.meters)):
            raise Unreadable("the devices of the cluster state are not the run's")
        next_batch = envelope.batch + 1
        sketch = sketch or QuantileSketch()
        return cls(spec, cluster, standing, sketch, next_batch, observation)

    def state(self) -> dict[str, Any]:
        state = {
            "cluster": self.cluster.to_json(),
            "standing": self.standing.model_dump(),
            "sketch": self.sketch.to_json(),
        }
        if self.observation is not None:
            state["observation"] = self.observation.to_json()
        return state

    def add_up(
        self, tasks: Tasks, device: Integers, cpu: Integers, priced: Price, finish: Floats
    ) -> tuple[Standing, QuantileSketch]:
        """The totals after these tasks; self is not changed."""
        standing, spec = self.standing, self.spec
        turnaround = finish - tasks.arrival_time
        sketch = self.sketch.add(np.maximum(turnaround, 0.0))
        wait = _waiting_times(turnaround, priced.time)
        reference = np.maximum(priced.best, spec.physics.slowdown_floor_s)
        p50, p95, p99 = sketch.quantiles(0.5, 0.95, 0.99)
        makespan = max(standing.makespan, float(finish.max()))
        busy = _work(standing.busy, spec.platform, tasks, device, cpu, priced)
        totals = _running_sums(
            standing,
            total_time=priced.time,
            total_wait=wait,
            total_turnaround=turnaround,
            total_energy=priced.energy,
            total_cost=priced.cost,
            total_cost_cloud=priced.cost_cloud,
            total_cost_electricity=priced.cost_electricity,
            total_slowdown=np.maximum(turnaround / reference, 1.0),
        )
        after = Standing(
            tasks=standing.tasks + len(tasks),
            failed=standing.failed + int(priced.failed.sum()),
            gpu_tasks=standing.gpu_tasks + int((priced.gpu_time > 0).sum()),
            **totals,
            makespan=makespan,
            clock=max(standing.clock, float(tasks.arrival_time.max())),
            busy=busy,
            turnaround_p50=p50,
            turnaround_p95=p95,
            turnaround_p99=p99,
            idle_energy=idle_energy(busy, makespan, spec.platform),
        )
        return after, sketch


def result_columns(tasks: Tasks, priced: Price, schedule: Schedule) -> dict[str, Any]:
    """The columns of a result that simulated and real runs compute alike."""
    turnaround = schedule.finish - tasks.arrival_time
    return {
        "time": priced.time,
        "wait": _waiting_times(turnaround, priced.time),
        "turnaround": turnaround,
        "energy": priced.energy,
        "cost": priced.cost,
        "cost_cloud": priced.cost_cloud,
        "cost_electricity": priced.cost_electricity,
        "gpu_time": priced.gpu_time,
        "cpu_time": priced.cpu_time,
        "gpu_start": schedule.gpu_start,
        "cpu_start": schedule.cpu_start,
        "finish": schedule.finish,
        "status": np.where(priced.failed, "failed", "ok") if priced.failed.any() else None,
    }


def _waiting_times(turnaround: Floats, time: Floats) -> Floats:
    """Rounding could give a wait of -1e-16."""
    return np.maximum(turnaround - time, 0.0)


def _work(
    busy: list[float],
    platform: Platform,
    tasks: Tasks,
    device: Integers,
    cpu: Integers,
    priced: Price,
) -> list[float]:
    """Adds each part's seconds to the meter of its device, in task order."""
    total = np.array(busy)
    for chosen, time in ((device, priced.gpu_time), (cpu, priced.cpu_time)):
        worked = time > 0
        if tasks.width is None:
            np.add.at(total, platform.meter_of[chosen[worked]], time[worked])
            continue
        for first, seconds, width in zip(
            chosen[worked], time[worked], tasks.width[worked], strict=True
        ):
            np.add.at(total, platform.meter_of[platform.gang(int(first), int(width))], seconds)
    added: list[float] = total.tolist()
    return added


def idle_energy(busy: list[float], makespan: float, platform: Platform) -> float:
    watts = {each.name: each.idle_watts for each in platform.types}
    return sum(
        watts[meter.type] * max(meter.devices * makespan - worked, 0.0)
        for meter, worked in zip(platform.meters, busy, strict=True)
    )


def _running_sums(standing: Standing, **values: Floats) -> dict[str, float]:
    """Adds the values to the totals of these names one by one, so that the sums do not depend on
    the batch boundaries."""
    added = np.empty((len(values), 1 + len(next(iter(values.values())))))
    added[:, 0] = [getattr(standing, name) for name in values]
    for row, each in zip(added, values.values(), strict=True):
        row[1:] = each
    return dict(zip(values, added.cumsum(axis=1)[:, -1].tolist(), strict=True))
