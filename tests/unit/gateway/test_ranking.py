from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.analysis.ranking import (
    BEYOND_FREE,
    DEFAULT_WEIGHTS,
    Averages,
    Weights,
    pareto_front,
    rank,
    scores,
)

RACE = {
    "fast": Averages(turnaround=5, time=1, energy=60, cost=4),
    "frugal": Averages(turnaround=5, time=3, energy=30, cost=1),
    "poor": Averages(turnaround=10, time=3, energy=60, cost=4),
}

# Few values, so that ties happen.
measures = st.integers(0, 3).map(float)
races = st.dictionaries(
    st.sampled_from("abcdefgh"), st.builds(Averages, *[measures] * 4), min_size=1
)


def test_a_score_says_how_many_times_the_best_a_scheduler_takes() -> None:
    assert scores(RACE, DEFAULT_WEIGHTS) == {"fast": 1, "frugal": 1, "poor": 2}
    assert scores(RACE, Weights(time=1)) == {"fast": 1, "frugal": 3, "poor": 3}
    assert scores(RACE, Weights(energy=1)) == {"fast": 2, "frugal": 1, "poor": 2}


def test_a_score_is_the_weighted_mean() -> None:
    """(2 * 1 + 1 * 2 + 1 * 4) / 4, (2 * 3 + 1 + 1) / 4, (2 * 3 + 2 + 4) / 4."""
    found = scores(RACE, Weights(time=2, energy=1, cost=1))
    assert found == pytest.approx({"fast": 2, "frugal": 2, "poor": 3})
    same = scores(RACE, Weights(time=50, energy=25, cost=25))
    assert same == pytest.approx(found)


def test_zero_is_best_and_anything_above_it_is_far_worse() -> None:
    free = {"a": Averages(1, 1, 0, 0), "b": Averages(1, 1, 5, 0)}
    assert scores(free, Weights(cost=1)) == {"a": 1, "b": 1}
    assert scores(free, Weights(energy=1)) == {"a": 1, "b": BEYOND_FREE}
    more = {**free, "c": Averages(1, 1, 10, 0)}
    assert scores(more, Weights(energy=1)) == {"a": 1, "b": 1000, "c": 2000}


def test_places_are_in_order_and_equal_scores_share_a_rank() -> None:
    places = rank(RACE, Weights(time=1))
    assert [(place.name, place.rank) for place in places] == [
        ("fast", 1),
        ("frugal", 2),
        ("poor", 2),
    ]
    four = {**RACE, "worst": Averages(9, 9, 9, 9)}
    assert [place.rank for place in rank(four, Weights(time=1))] == [1, 2, 2, 4]
    assert rank({}, DEFAULT_WEIGHTS) == []


def test_references_are_listed_by_their_score_but_take_no_rank_and_no_place_on_the_front() -> None:
    """The clairvoyant scheduler is better than all others in everything."""
    race = {**RACE, "oracle": Averages(20, 0.5, 60, 4), "clairvoyant": Averages(4, 1, 30, 1)}
    places = rank(race, DEFAULT_WEIGHTS)
    assert [(place.name, place.rank, place.score) for place in places] == [
        ("clairvoyant", None, 1),
        ("fast", 1, 1.25),
        ("frugal", 1, 1.25),
        ("poor", 3, 2.5),
        ("oracle", None, 5),
    ]
    assert {place.name for place in places if place.pareto} == {"fast", "frugal"}


def test_the_pareto_front_has_the_schedulers_that_no_other_dominates() -> None:
    """poor is beaten by fast, which is as good in energy and cost and faster."""
    assert pareto_front(RACE) == {"fast", "frugal"}
    twins = {"a": Averages(1, 1, 2, 3), "b": Averages(1, 1, 2, 3)}
    assert pareto_front(twins) == {"a", "b"}


def at_least_as_good(one: Averages, other: Averages) -> bool:
    no_longer = one.turnaround <= other.turnaround and one.time <= other.time
    return no_longer and one.energy <= other.energy and one.cost <= other.cost


@given(races)
def test_everyone_off_the_front_is_beaten_by_someone_on_it(race: dict[str, Averages]) -> None:
    front = pareto_front(race)
    assert front
    for name, own in race.items():
        beaten_by = {
            other for other in race if at_least_as_good(race[other], own) and race[other] != own
        }
        assert (name in front) == (not beaten_by)
        assert name in front or beaten_by & front


@given(races, measures, measures, measures, measures)
def test_the_best_by_any_weights_that_all_count_is_on_the_front(
    race: dict[str, Averages], turnaround: float, time: float, energy: float, cost: float
) -> None:
    places = rank(race, Weights(turnaround + 0.5, time + 0.5, energy + 0.5, cost + 0.5))
    assert places[0].pareto
    assert all(place.score >= 1 - 1e-9 for place in places)


@given(races)
def test_the_front_does_not_depend_on_weights(race: dict[str, Averages]) -> None:
    one, other = rank(race, DEFAULT_WEIGHTS), rank(race, Weights(energy=1, cost=3))
    assert {p.name for p in one if p.pareto} == {p.name for p in other if p.pareto}
