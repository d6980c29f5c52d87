"""Prices a batch of decisions, runs it on the virtual cluster and adds it to the standing."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from shared.domain import virtual_cluster as virtual
from shared.domain.cluster_tracker import follow
from shared.domain.observation import Observation
from shared.domain.physics import Price, price
from shared.domain.platform import NOWHERE, Platform
from shared.domain.quantile_sketch import QuantileSketch
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Integers, Tasks
from shared.domain.virtual_cluster import Cluster
from shared.errors import Unreadable
from shared.messages import batches
from shared.messages.envelope import Envelope
from shared.messages.standing import Standing


@dataclass(slots=True)
class Simulation:
    """The state of one scheduler's run after some batch."""

    spec: RunSpec
    cluster: Cluster
    standing: Standing
    sketch: QuantileSketch
    next_batch: int = 0
    # What the scheduler knows of its cluster; None: it does not look.
    observation: Observation | None = None

    @classmethod
    def new(cls, spec: RunSpec) -> Simulation:
        standing = Standing(busy=[0.0] * len(spec.platform.meters))
        return cls(spec, Cluster.idle(len(spec.platform)), standing, QuantileSketch())

    @classmethod
    def after(cls, spec: RunSpec, envelope: Envelope) -> Simulation:
        """The simulation after the results in this envelope."""
        state = envelope.state
        if not isinstance(state, dict):
            raise Unreadable("results without a cluster state")
        try:
            cluster = Cluster.from_json(state["cluster"])
            standing = Standing.model_validate(state["standing"])
            # Versions before 0.2 had none: quantiles are of the tasks since then.
            sketch = QuantileSketch.from_json(state["sketch"]) if "sketch" in state else None
            seen = state.get("observation")
            observation = None if seen is None else Observation.from_json(seen)
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

    def advance(self, decisions: pa.RecordBatch) -> tuple[pa.RecordBatch, Simulation]:
        """The results of the next batch, and the simulation after it; self is not changed."""
        tasks = batches.tasks_of(decisions)
        share = batches.column(decisions, "gpu_fraction")
        device, cpu = self._devices(decisions)
        self._check(tasks, device, cpu)
        # Where the decision names no CPU, that of the rotation.
        device, cpu = self.spec.platform.complete(tasks.task_id, share, device, cpu)
        priced = price(tasks, share, self.spec, device, cpu)
        cluster, order = self.cluster.copy(), batches.order_of(decisions)
        observation = self._observe(decisions, tasks, share, device, cpu, priced, order)
        split, platform = self.spec.physics.split, self.spec.platform
        schedule = virtual.run(cluster, tasks, device, cpu, priced, split, platform, order)
        turnaround = schedule.finish - tasks.arrival_time
        # Rounding could give a wait of -1e-16.
        wait = np.maximum(turnaround - priced.time, 0.0)
        rows = batches.result_rows(
            decisions,
            {
                "time": priced.time,
                "wait": wait,
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
                "status": np.where(priced.failed, "failed", "ok"),
            },
        )
        sketch = self.sketch.add(np.maximum(turnaround, 0.0))
        standing = self._add_up(tasks, device, cpu, priced, schedule.finish, sketch)
        after = self.next_batch + 1
        return rows, Simulation(self.spec, cluster, standing, sketch, after, observation)

    def _observe(
        self,
        decisions: pa.RecordBatch,
        tasks: Tasks,
        share: Floats,
        device: Integers,
        cpu: Integers,
        priced: Price,
        order: Integers | None,
    ) -> Observation | None:
        """What the scheduler knows after this batch, if it looks at its cluster."""
        expected_time = batches.column(decisions, "expected_time")
        if self.observation is None and not expected_time.any():
            return None
        cluster = self.cluster.copy()
        observation = (self.observation or Observation(cluster)).copy()
        follow(
            cluster,
            observation,
            tasks,
            share,
            device,
            cpu,
            expected_time,
            priced,
            self.spec,
            order,
        )
        return observation

    def _devices(self, decisions: pa.RecordBatch) -> tuple[Integers, Integers]:
        device, cpu = (batches.column(decisions, name) for name in ("device", "cpu"))
        return device.astype(np.int64), cpu.astype(np.int64)

    def _check(self, tasks: Tasks, device: Integers, cpu: Integers) -> None:
        platform = self.spec.platform
        for name, number, allowed in (
            ("device", device, platform.accelerators),
            ("cpu", cpu, platform.cpus),
        ):
            wrong = (number != NOWHERE) & ~np.isin(number, allowed)
            if wrong.any():
                kind = "accelerator" if name == "device" else "CPU"
                raise Unreadable(f"{name} {number[wrong][0]} is no {kind} of the cluster")
        if tasks.task_id[0] != self.cluster.next_task:
            raise Unreadable(
                f"batch starts with task {tasks.task_id[0]}, task {self.cluster.next_task} is next"
            )

    def _add_up(
        self,
        tasks: Tasks,
        device: Integers,
        cpu: Integers,
        priced: Price,
        finish: Floats,
        sketch: QuantileSketch,
    ) -> Standing:
        standing, spec = self.standing, self.spec
        turnaround = finish - tasks.arrival_time
        wait = np.maximum(turnaround - priced.time, 0.0)
        reference = np.maximum(priced.best, spec.physics.slowdown_floor_s)
        p50, p95, p99 = sketch.quantiles(0.5, 0.95, 0.99)
        makespan = max(standing.makespan, float(finish.max()))
        busy = _work(standing.busy, spec.platform, tasks, device, cpu, priced)
        return Standing(
            tasks=standing.tasks + len(tasks),
            failed=standing.failed + int(priced.failed.sum()),
            gpu_tasks=standing.gpu_tasks + int((priced.gpu_time > 0).sum()),
            total_time=_running_sum(standing.total_time, priced.time),
            total_wait=_running_sum(standing.total_wait, wait),
            total_turnaround=_running_sum(standing.total_turnaround, turnaround),
            total_energy=_running_sum(standing.total_energy, priced.energy),
            total_cost=_running_sum(standing.total_cost, priced.cost),
            total_cost_cloud=_running_sum(standing.total_cost_cloud, priced.cost_cloud),
            total_cost_electricity=_running_sum(
                standing.total_cost_electricity, priced.cost_electricity
            ),
            makespan=makespan,
            clock=max(standing.clock, float(tasks.arrival_time.max())),
            busy=busy,
            total_slowdown=_running_sum(
                standing.total_slowdown, np.maximum(turnaround / reference, 1.0)
            ),
            turnaround_p50=p50,
            turnaround_p95=p95,
            turnaround_p99=p99,
            idle_energy=_idle_energy(busy, makespan, spec.platform),
        )


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


def _idle_energy(busy: list[float], makespan: float, platform: Platform) -> float:
    watts = {each.name: each.idle_watts for each in platform.types}
    return sum(
        watts[meter.type] * max(meter.devices * makespan - worked, 0.0)
        for meter, worked in zip(platform.meters, busy, strict=True)
    )


def _running_sum(total: float, values: Floats) -> float:
    """Adds the values one by one, so that the sum does not depend on the batch boundaries."""
    return float(np.cumsum(np.concatenate(([total], values)))[-1])
