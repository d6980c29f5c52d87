"""What a policy sees of the machine."""

from __future__ import annotations

import time

import pytest

from services.executor.clock import SchedulerClock
from services.executor.device_queue import DeviceQueue
from services.executor.jobs import Job
from services.executor.machine_state import observe
from services.scheduler.cluster_worker import ClusterCopy
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.spec import RunSpec
from shared.execution.device_process import Measured
from shared.messages import batches
from tests.unit.executor.facts import ACCELERATOR, CPU, decided, jobs_of, real_spec

NOW = 100.0  # on the scheduler's clock


class StoppedClock(SchedulerClock):
    def now(self) -> float:
        return NOW


class Machine:
    """Two queues that nobody serves, at 100 s."""

    def __init__(self, spec: RunSpec | None = None) -> None:
        self.spec = spec or real_spec()
        self.clock, self.moment = StoppedClock(NOW), time.monotonic()
        self.queues = [DeviceQueue(None, lambda part: None) for _ in range(2)]  # type: ignore[arg-type]
        self.unfinished: dict[int, Job] = {}

    def queue(self, device: int, *jobs: Job, running: float) -> None:
        """The first of the jobs has been running for so many seconds."""
        for job in jobs:
            self.unfinished[job.task_id] = job
            self.queues[device].add(next(part for part in job.parts if part.device == device))
        self.queues[device].first_since = self.moment - running

    def view(self, **columns: object) -> ClusterView:
        """The view of a policy that has to place a task that arrives now."""
        overlapped = self.spec.physics.split == "overlapped"
        first = len(self.unfinished)
        state = observe(self.queues, self.unfinished, [0, 0], self.clock, first, overlapped)
        copy = ClusterCopy.from_state(first, state)
        rows = decided([0.0] * (first + 1), **columns).slice(first)
        tasks = batches.tasks_of(rows)
        view = ClusterView(copy.cluster, copy.observation, tasks, self.spec)
        next(view.arrivals())
        return view


def test_queued_work_is_what_the_scheduler_expects() -> None:
    machine = Machine()
    running, waiting = jobs_of(decided([1.0, 1.0], expected=[5.0, 2.0]))
    machine.queue(ACCELERATOR, running, waiting, running=1.0)
    view = machine.view()
    assert view.now == pytest.approx(NOW, abs=0.01)
    assert view.queued().tolist() == pytest.approx([4 + 2, 0], abs=0.01)
    assert view.waiting().tolist() == [1, 0]


def test_a_part_that_is_late_is_expected_to_end_now() -> None:
    machine = Machine()
    late, waiting = jobs_of(decided([1.0, 1.0], expected=[5.0, 2.0]))
    machine.queue(ACCELERATOR, late, waiting, running=50.0)
    assert machine.view().queued().tolist() == pytest.approx([2, 0], abs=0.01)


def test_the_rest_of_a_split_task_waits_for_its_first_part() -> None:
    """The accelerator's part ends in 0.3 s; then the CPU works for 1 s."""
    machine = Machine()
    (job,) = jobs_of(decided([0.5], expected=[1.4]))
    machine.queue(ACCELERATOR, job, running=0.1)
    assert machine.view().available().tolist() == pytest.approx([NOW + 0.3, NOW + 1.3], abs=0.01)


def test_of_a_finished_part_nothing_is_left() -> None:
    machine = Machine()
    (job,) = jobs_of(decided([0.5], expected=[1.4]))
    moment = time.monotonic()
    job.accelerator.measured = Measured(moment - 9, moment - 8)
    machine.queue(CPU, job, running=0.4)
    assert machine.view().queued().tolist() == pytest.approx([0, 0.6], abs=0.01)


def test_a_child_is_ready_when_its_parents_are_expected_to_finish() -> None:
    machine = Machine()
    (parent,) = jobs_of(decided([0.0], expected=[7.0]))
    machine.queue(CPU, parent, running=2.0)
    view = machine.view(parents=[[], [0]])
    assert view.ready == pytest.approx(NOW + 5, abs=0.01)
