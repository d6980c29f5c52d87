"""The methods behind the bounds against a linear program written from the rules of the physics."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.domain.bounds import cluster_bound as module
from shared.domain.bounds.cluster_bound import arrival_bound, cluster_bound
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks, take
from tests.unit.shared.domain.bound_cases import solved, spec_with, specs, task_lists


@st.composite
def cases(draw: st.DrawFn, least: int, most: int) -> tuple[Tasks, RunSpec]:
    spec = draw(specs(least, most))
    return draw(task_lists(spec, most=12)), spec


@settings(max_examples=100, deadline=None)
@given(cases(1, 2))
def test_the_sort_finds_what_the_linear_program_has(case: tuple[Tasks, RunSpec]) -> None:
    bound = cluster_bound(*case)
    assert bound.method == "sort"
    assert bound.value == pytest.approx(solved(*case), rel=1e-8, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(cases(3, 6))
def test_the_solver_finds_what_the_linear_program_has(case: tuple[Tasks, RunSpec]) -> None:
    bound = cluster_bound(*case)
    assert bound.method == "lp"
    assert bound.value == pytest.approx(solved(*case), rel=1e-7, abs=1e-12)
    assert bound.gap < 1e-6


@settings(max_examples=100, deadline=None)
@given(cases(3, 6))
def test_the_dual_finds_what_the_linear_program_has(case: tuple[Tasks, RunSpec]) -> None:
    with patch.object(module, "MOST_SOLVED", 0):
        bound = cluster_bound(*case)
    expected = solved(*case)
    assert bound.value == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert bound.value <= expected * (1 + 1e-8)
    assert bound.gap < 1e-6


@settings(max_examples=100, deadline=None)
@given(cases(3, 5), st.booleans())
def test_the_bound_with_arrivals_has_that_of_what_arrives_from_any_tried_moment_on(
    case: tuple[Tasks, RunSpec], dual: bool
) -> None:
    tasks, spec = case
    with patch.object(module, "MOST_SOLVED_OFTEN", 0 if dual else 500):
        bound = arrival_bound(tasks, spec)
    # With so few tasks, the first moment and the last are always tried.
    for start in (tasks.arrival_time[0], tasks.arrival_time[-1]):
        still = take(tasks, np.flatnonzero(tasks.arrival_time >= start))
        assert bound.value >= (start + solved(still, spec)) * (1 - 1e-6)


@pytest.mark.parametrize("policy", ["cpu", "page", "fail"])
@pytest.mark.parametrize("types", [3, 4, 5, 8])
def test_the_dual_agrees_with_the_solver_on_thousands_of_tasks(types: int, policy: str) -> None:
    draw = np.random.default_rng(types)
    count = 3000
    tasks = Tasks(
        np.arange(count),
        draw.lognormal(5.3, 1.5, count),
        draw.uniform(0, 1, count),
        draw.lognormal(8.0, 1.5, count),
        np.zeros(count),
        width=draw.integers(1, 3, count),
    )
    devices = [{"type": "cpu", "count": 6}] + [
        {
            "type": f"gpu{number}",
            "count": int(draw.integers(2, 9)),
            "speed": float(draw.uniform(0.5, 6)),
            "speedup_slope": float(draw.uniform(0, 4)),
            "memory_mb": float(draw.uniform(2000, 40_000)),
            "bandwidth_mb_s": float(draw.uniform(2000, 30_000)),
        }
        for number in range(types - 1)
    ]
    spec = spec_with(devices, memory_policy=policy, noise=0.4)
    exact = cluster_bound(tasks, spec)
    with patch.object(module, "MOST_SOLVED", 0):
        bound = cluster_bound(tasks, spec)
    assert (exact.method, bound.method) == ("lp", "dual")
    assert bound.value == pytest.approx(exact.value, rel=1e-6)
    assert max(bound.gap, exact.gap) < 1e-6
