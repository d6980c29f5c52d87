"""Arrival processes: the mean rate is the stated one, whatever the process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats
from shared.domain.workload import Cursor, generate

BURSTY = {"kind": "bursty", "burst_tasks": 50, "factor": 10}
# A day of 100 s whose four quarters have 1/8, 0, 5/8 and 2/8 of the arrivals.
DIURNAL = {"kind": "diurnal", "period_s": 100, "profile": [1, 0, 5, 2]}


def spec_with(arrivals: dict[str, Any], rate: float = 4.0, seed: int = 42) -> RunSpec:
    return RunSpec.parse(
        {"seed": seed, "workload": {"arrivals": arrivals, "arrival_rate": rate}},
    )


def arrivals_of(spec: RunSpec, count: int) -> Floats:
    return generate(spec, Cursor(), count)[0].arrival_time


def test_the_default_is_poisson() -> None:
    assert RunSpec.parse({}).workload.arrivals == spec_with({"kind": "poisson"}).workload.arrivals


@pytest.mark.parametrize("arrivals", [BURSTY, DIURNAL, {"kind": "diurnal"}])
@settings(max_examples=15, deadline=None)
@given(
    sizes=st.lists(st.one_of(st.integers(1, 20), st.integers(1000, 5000)), min_size=1, max_size=6)
)
@example(sizes=[49, 1, 1, 4096])
@example(sizes=[4096, *[1] * 100])
def test_arrivals_are_bit_identical_whatever_the_batch_sizes(
    arrivals: dict[str, Any], sizes: list[int]
) -> None:
    spec = spec_with(arrivals)
    at_once, end = generate(spec, Cursor(), sum(sizes))
    cursor, parts = Cursor(), []
    for size in sizes:
        tasks, cursor = generate(spec, cursor, size)
        parts.append(tasks.arrival_time)
    assert np.concatenate(parts).tobytes() == at_once.arrival_time.tobytes()
    assert cursor == end


@pytest.mark.parametrize("arrivals", [BURSTY, DIURNAL])
def test_arrivals_never_go_back_and_everything_else_of_a_task_stays(
    arrivals: dict[str, Any],
) -> None:
    tasks, _ = generate(spec_with(arrivals), Cursor(), 20_000)
    poisson, _ = generate(spec_with({"kind": "poisson"}), Cursor(), 20_000)
    assert (np.diff(tasks.arrival_time, prepend=0.0) >= 0).all()
    for name in ("task_id", "size", "compute_intensity", "memory_required"):
        assert getattr(tasks, name).tobytes() == getattr(poisson, name).tobytes()


def test_bursts_come_at_their_factor_of_the_rate_and_pauses_make_up_for_it() -> None:
    """50 tasks take 12.5 s on average at 4 a second: 49 gaps of 1/40 s, and 11.275 s of pause."""
    bursts = 4000
    gaps = np.diff(arrivals_of(spec_with(BURSTY), 50 * bursts), prepend=0.0).reshape(bursts, 50)
    pause, within = gaps[:, 0], gaps[:, 1:]
    # Both are exponential: the standard error of a mean is the mean over the root of the number.
    assert within.mean() == pytest.approx(1 / 40, rel=5 / within.size**0.5)
    assert pause.mean() == pytest.approx(11.275, rel=5 / bursts**0.5)
    assert gaps.sum() == pytest.approx(12.5 * bursts, rel=5 / bursts**0.5)


def test_bursts_are_far_from_poisson() -> None:
    """E[gap^2] is twice the square of each mean: the squared coefficient of variation of the gaps
    is 2 (49 / 40^2 + 11.275^2) / 50 / 0.25^2 - 1 = 80.4; that of a Poisson stream is 1."""
    gaps = np.diff(arrivals_of(spec_with(BURSTY), 200_000), prepend=0.0)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(80.4, rel=0.15)
    even = np.diff(arrivals_of(spec_with({"kind": "poisson"}), 200_000), prepend=0.0)
    assert even.var() / even.mean() ** 2 == pytest.approx(1, rel=0.05)


def test_a_day_stretches_the_poisson_stream_by_its_profile() -> None:
    """After 12.5 s at a constant rate 1/8 of a day's tasks have arrived: that is after 25 s of this
    day. Nobody comes until 50 s; then 5/8 come within 25 s, and 2/8 in the rest."""
    constant = arrivals_of(spec_with({"kind": "poisson"}), 5000)
    days, done = constant // 100, constant % 100
    expected = np.where(
        done < 12.5,
        done * 2,
        np.where(done < 75, 50 + (done - 12.5) * 25 / 62.5, 75 + (done - 75)),
    )
    found = arrivals_of(spec_with(DIURNAL), 5000)
    assert found == pytest.approx(100 * days + expected, rel=1e-9)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_share_of_each_hour_is_that_of_the_default_day(seed: int) -> None:
    """The arrivals in each hour of 20 days are 24 Poisson numbers. The sum of their squared
    deviations over their means has mean 24 and deviation sqrt(2 * 24), about 7."""
    spec = spec_with({"kind": "diurnal"}, rate=0.1, seed=seed)
    arrival = arrivals_of(spec, 200_000)
    arrival = arrival[arrival < 20 * 86_400]
    assert len(arrival) < 200_000
    count = np.bincount((arrival % 86_400 // 3600).astype(int), minlength=24)
    weights = np.array(spec.model_dump()["workload"]["arrivals"]["profile"])
    expected = 20 * 86_400 * 0.1 * weights / weights.sum()
    assert ((count - expected) ** 2 / expected).sum() < 24 + 5 * 7
    # Far more in the working hours than at night.
    assert count[9:17].min() > 3 * count[:6].max()


def test_the_mean_rate_of_whole_days_is_the_stated_one() -> None:
    arrival = arrivals_of(spec_with(DIURNAL, rate=10), 200_000)
    whole_days = (arrival < 190 * 100).sum()
    assert whole_days == pytest.approx(190 * 1000, abs=5 * (190 * 1000) ** 0.5)


def test_an_hour_without_weight_has_no_arrivals() -> None:
    arrival = arrivals_of(spec_with(DIURNAL, rate=10), 100_000) % 100
    assert not ((arrival > 25 + 1e-6) & (arrival < 50 - 1e-6)).any()


@pytest.mark.parametrize("profile", [[3], [0, 1, 0], [0.1] * 7, [1e9, 1e-3]])
def test_any_profile_keeps_the_order_of_the_tasks(profile: list[float]) -> None:
    day = {"kind": "diurnal", "period_s": 7, "profile": profile}
    arrival = arrivals_of(spec_with(day, rate=100), 50_000)
    assert np.isfinite(arrival).all()
    assert (np.diff(arrival) >= 0).all()
    # A run of 500 s has 71 days and a part of one.
    assert arrival[-1] == pytest.approx(500, abs=7 + 5 * 50_000**0.5 / 100)
