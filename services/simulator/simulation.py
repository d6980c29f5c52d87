"""Prices a batch of decisions, runs it on the virtual cluster and adds it to the standing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from shared.domain import virtual_cluster as virtual
from shared.domain.physics import Price, price
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
    next_batch: int = 0

    @classmethod
    def new(cls, spec: RunSpec) -> Simulation:
        standing = Standing(cpu_busy=[0.0] * spec.cluster.cpus, gpu_busy=[0.0] * spec.cluster.gpus)
        return cls(spec, Cluster.idle(spec), standing)

    @classmethod
    def after(cls, spec: RunSpec, envelope: Envelope) -> Simulation:
        """The simulation after the results in this envelope."""
        state = envelope.state
        if not isinstance(state, dict):
            raise Unreadable("results without a cluster state")
        try:
            cluster = Cluster.from_json(state["cluster"])
            standing = Standing.model_validate(state["standing"])
        except (KeyError, TypeError, ValueError) as error:
            raise Unreadable(f"the cluster state in the results is broken: {error!r}") from None
        cpus = {len(cluster.cpu_free), len(standing.cpu_busy)}
        gpus = {len(cluster.gpu_free), len(standing.gpu_busy)}
        if (cpus, gpus) != ({spec.cluster.cpus}, {spec.cluster.gpus}):
            raise Unreadable("the devices of the cluster state are not the run's")
        return cls(spec, cluster, standing, envelope.batch + 1)

    def state(self) -> dict[str, Any]:
        return {"cluster": self.cluster.to_json(), "standing": self.standing.model_dump()}

    def advance(self, decisions: pa.RecordBatch) -> tuple[pa.RecordBatch, Simulation]:
        """The results of the next batch, and the simulation after it; self is not changed."""
        tasks = batches.tasks_of(decisions)
        gpu: Integers = batches.column(decisions, "gpu")
        self._check(tasks, gpu)
        priced = price(tasks, batches.column(decisions, "gpu_fraction"), self.spec)
        cluster = self.cluster.copy()
        schedule = virtual.run(cluster, tasks, gpu, priced, self.spec.physics.split)
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
        standing = add_up(self.standing, tasks, gpu, priced, wait, turnaround, schedule.finish)
        return rows, Simulation(self.spec, cluster, standing, self.next_batch + 1)

    def _check(self, tasks: Tasks, gpu: Integers) -> None:
        if gpu.max() >= self.spec.cluster.gpus:
            raise Unreadable(f"no GPU {gpu.max()}: the GPUs are 0..{self.spec.cluster.gpus - 1}")
        if tasks.task_id[0] != self.cluster.next_task:
            raise Unreadable(
                f"batch starts with task {tasks.task_id[0]}, task {self.cluster.next_task} is next"
            )


def add_up(
    standing: Standing,
    tasks: Tasks,
    gpu: Integers,
    priced: Price,
    wait: Floats,
    turnaround: Floats,
    finish: Floats,
) -> Standing:
    cpu_busy, gpu_busy = list(standing.cpu_busy), list(standing.gpu_busy)
    cpu = tasks.task_id % len(cpu_busy)
    for device in range(len(cpu_busy)):
        cpu_busy[device] = _running_sum(cpu_busy[device], priced.cpu_time[cpu == device])
    for device in range(len(gpu_busy)):
        gpu_busy[device] = _running_sum(gpu_busy[device], priced.gpu_time[gpu == device])
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
        makespan=max(standing.makespan, float(finish.max())),
        clock=max(standing.clock, float(tasks.arrival_time[-1])),
        cpu_busy=cpu_busy,
        gpu_busy=gpu_busy,
    )


def _running_sum(total: float, values: Floats) -> float:
    """Adds the values one by one, so that the sum does not depend on the batch boundaries."""
    return float(np.cumsum(np.concatenate(([total], values)))[-1])
