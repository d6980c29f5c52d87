"""Which parts a decision means."""

from __future__ import annotations

import pytest

from services.executor.jobs import GIVEN_UP, MOST_ATTEMPTS, NO_DEVICE, RAN_AGAIN, TOO_WIDE
from tests.unit.executor.facts import ACCELERATOR, CPU, decided, jobs_of, real_spec


def test_a_whole_task_is_one_part() -> None:
    on_device, on_cpu = jobs_of(decided([1.0, 0.0], expected=[0.25, 3.0]))
    (part,) = on_device.parts
    assert (part.device, part.work.share, part.expected) == (ACCELERATOR, 1.0, 0.25)
    assert part.work.kind == "mix"
    (part,) = on_cpu.parts
    assert (part.device, part.work.share, part.expected) == (CPU, 1.0, 3.0)


def test_a_split_task_is_two_parts_in_proportion() -> None:
    """Half of 1 s on the CPU, half of 0.4 s (speed-up 2.5) on the accelerator: with an estimate of
    1.4 s for the sum of 0.7 s, each part is expected to take twice as long."""
    (job,) = jobs_of(decided([0.5], expected=[1.4]))
    assert [part.work.share for part in job.parts] == [0.5, 0.5]
    assert [part.expected for part in job.parts] == pytest.approx([0.4, 1.0], rel=1e-3)


def test_the_kind_names_the_kernel() -> None:
    (job,) = jobs_of(decided([1.0], kind=["sort"]))
    assert job.parts[0].work.kind == "sort"


def test_a_task_that_does_not_fit_is_not_started() -> None:
    """8000 MB of the accelerator, by default."""
    spec = real_spec(physics={"memory_policy": "fail"})
    rows = decided([1.0])
    big = rows.set_column(3, "memory_required", [9000.0])
    (job,) = jobs_of(big, spec)
    assert (job.failed, job.reason, job.parts) == (True, NO_DEVICE, [])


def test_where_the_memory_policy_says_so_it_runs_on_the_cpu() -> None:
    (job,) = jobs_of(decided([1.0]).set_column(3, "memory_required", [9000.0]))
    assert [part.device for part in job.parts] == [CPU]


def test_a_wide_task_fails() -> None:
    import numpy as np

    (job,) = jobs_of(decided([1.0], width=np.array([2])))
    assert (job.failed, job.reason) == (True, TOO_WIDE)


def test_a_task_that_runs_again_says_so_until_it_is_given_up() -> None:
    (job,) = jobs_of(decided([1.0]), attempt=2)
    assert (job.failed, job.attempt, job.reason) == (False, 2, RAN_AGAIN)
    (job,) = jobs_of(decided([1.0]), attempt=MOST_ATTEMPTS + 1)
    assert (job.failed, job.reason, job.parts) == (True, GIVEN_UP, [])
