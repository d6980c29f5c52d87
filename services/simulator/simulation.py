"""Prices a batch of decisions, runs it on the virtual cluster and adds it to the standing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from shared.domain.cluster import virtual_cluster as virtual
from shared.domain.cluster.cluster_tracker import follow
from shared.domain.cluster.observation import Observation
from shared.domain.physics import Price, price
from shared.domain.tasks import Floats, Integers, Tasks
from shared.errors import Unreadable
from shared.messages import batches
from shared.messages.checkpoint import Checkpoint, result_columns


class Simulation(Checkpoint):
    """A scheduler's run on its virtual cluster."""

    __slots__ = ()

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
        decided = tasks.delayed(self.spec.physics.decision_s)
        schedule = virtual.run(cluster, decided, device, cpu, priced, split, platform, order)
        rows = batches.result_rows(decisions, result_columns(tasks, priced, schedule))
        standing, sketch = self.add_up(tasks, device, cpu, priced, schedule.finish)
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
        for name, numbers in (("device", device), ("cpu", cpu)):
            wrong = self.spec.platform.misnamed(numbers, accelerator=name == "device")
            if wrong.any():
                kind = "accelerator" if name == "device" else "CPU"
                raise Unreadable(f"{name} {numbers[wrong][0]} is no {kind} of the cluster")
        if tasks.task_id[0] != self.cluster.next_task:
            raise Unreadable(
                f"batch starts with task {tasks.task_id[0]}, task {self.cluster.next_task} is next"
            )
