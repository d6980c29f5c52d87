"""Results from measurements, worked out by hand."""

from __future__ import annotations

import time

import pytest

from services.executor.clock import SchedulerClock
from services.executor.measured_results import add_results
from shared.execution.device_process import Measured
from shared.messages.checkpoint import Checkpoint
from tests.unit.executor.facts import decided, jobs_of, real_spec


def test_a_batch_is_priced_by_what_was_measured() -> None:
    """A split task: 2 s on the accelerator, 3 s on the CPU, one after the other, then one that was
    killed after 1 s on the CPU, whose energy was measured. The scheduler's clock was at 10 s."""
    spec = real_spec()
    rows = decided([0.5, 0.0])
    split, killed = jobs_of(rows, spec)
    clock = SchedulerClock(10.0)
    began = time.monotonic() - (clock.now() - 10.0)
    split.accelerator.measured = Measured(began + 1, began + 3, transfer_s=0.5)
    split.cpu.measured = Measured(began + 4, began + 7)
    split.finish = 17.0
    killed.cpu.measured = Measured(began + 7, began + 8, energy_j=4.5, failure="killed")
    killed.fail("killed")
    killed.finish = 18.0
    results, after = add_results(Checkpoint.new(spec), rows, [split, killed], clock)
    first, second = results.to_pylist()

    expected = {
        "gpu_time": 2, "cpu_time": 3, "time": 5, "gpu_start": 11, "cpu_start": 14, "finish": 17,
        "turnaround": 17, "wait": 12, "transfer_time": 0.5, "energy": 50 * 2 + 20 * 3,
        "cost_cloud": 0.5 * 2 + 0.25 * 3, "attempt": 1,
    }  # fmt: skip
    assert {name: first[name] for name in expected} == pytest.approx(expected, abs=1e-3)
    assert (first["status"], first["reason"], first["energy_measured"]) == ("ok", "", False)

    expected = {"gpu_time": 0, "cpu_time": 1, "time": 1, "wait": 17, "energy": 4.5}
    assert {name: second[name] for name in expected} == pytest.approx(expected, abs=1e-3)
    assert (second["status"], second["reason"]) == ("failed", "killed")
    assert second["energy_measured"]

    assert after.cluster.free == pytest.approx([13, 18], abs=1e-3)
    assert (after.next_batch, after.cluster.next_task) == (1, 2)
    assert (after.standing.tasks, after.standing.failed) == (2, 1)
    assert after.standing.busy == pytest.approx([2, 4], abs=1e-3)
    assert after.standing.total_turnaround == pytest.approx(35, abs=1e-3)


def test_overlapped_parts_count_once() -> None:
    spec = real_spec(physics={"split": "overlapped"})
    rows = decided([0.5])
    (job,) = jobs_of(rows, spec)
    now, clock = time.monotonic(), SchedulerClock(0.0)
    job.accelerator.measured = Measured(now, now + 2)
    job.cpu.measured = Measured(now, now + 3)
    job.finish = clock.at(now + 3)
    results, _ = add_results(Checkpoint.new(spec), rows, [job], clock)
    assert results.column("time")[0].as_py() == pytest.approx(3)
