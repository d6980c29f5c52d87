"""Which tasks are counted at a moment."""

from __future__ import annotations

import numpy as np
import pytest

from services.gateway.analysis.queues import Standings, TaskTimes, sampled


def test_tasks_wait_until_started_and_count_until_finished() -> None:
    """Task 3 arrives at 0, starts at 2, ends at 5; task 4 arrives at 1, starts at 5, ends at 6."""
    times = TaskTimes(np.array([3, 4]), np.array([0.0, 1]), np.array([2.0, 5]), np.array([5.0, 6]))
    counted = {time: times.count(time, [(3, 5)]) for time in (0.0, 1.0, 2.0, 4.9, 5.0, 6.0)}
    assert counted == {0.0: (1, 1), 1.0: (2, 2), 2.0: (2, 1), 4.9: (2, 1), 5.0: (1, 0), 6.0: (0, 0)}
    assert times.count(2.0, [(4, 5)]) == (1, 1)


def test_candidates_are_those_between_finished_and_arriving_batches() -> None:
    """Batches of 10 tasks that arrive until 1, 2 and 3 and are finished by 1.5, 7 and 8."""
    clock, makespan = np.array([1.0, 2.0, 3.0]), np.array([1.5, 7.0, 8.0])
    standings = Standings(np.array([0, 100, 200]), np.array([10, 20, 30]), clock, makespan)
    times = np.array([0.5, 1.0, 1.6, 3.0, 7.5])
    assert standings.candidates(times) == [(0, 10), (0, 20), (10, 20), (10, 30), (20, 30)]
    # At 7.5 all have arrived, and the first that is unfinished is between batches 100 and 200.
    assert set(standings.between(times[-1:])) == {0, *(round(100 + 100 * k / 9) for k in range(10))}


def test_a_sample_stands_for_all_parts_of_a_long_range() -> None:
    blocks = sampled((1000, 101_000))
    assert sum(last - first for first, last in blocks) == 4096
    assert np.mean([first + 256 for first, _ in blocks]) == pytest.approx(51_000, abs=1)
    assert min(blocks)[0] > 1000
    assert max(blocks)[1] < 101_000
