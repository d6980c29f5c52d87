"""The capacity search: the answer of trying every value, with far fewer tries."""

from __future__ import annotations

import pytest

from services.lab.capacity.question import Target, Variation
from services.lab.capacity.search import search
from shared.errors import SpecError


@pytest.mark.parametrize("enough", [1, 2, 3, 11, 32, 63, 64])
def test_it_finds_the_first_value_that_is_enough(enough: int) -> None:
    answer = search(range(1, 65), lambda count: count >= enough)
    assert answer.value == enough
    assert answer.monotone
    assert len(answer.tried) <= 10


@pytest.mark.parametrize("most", [1, 7, 40, 63])
def test_it_finds_the_last_value_that_is_not_too_much(most: int) -> None:
    answer = search(range(1, 65), lambda rate: rate <= most)
    assert answer.value == most
    assert len(answer.tried) <= 10


def test_where_nothing_is_enough_two_tries_tell() -> None:
    answer = search(range(1, 65), lambda count: False)
    assert (answer.value, len(answer.tried)) == (None, 2)


def test_where_everything_is_enough_the_least_is_the_answer() -> None:
    assert search(range(3, 9), lambda count: True).value == 3


def test_one_value_is_tried_once() -> None:
    assert search([5], lambda count: True).tried == {5: True}


def test_a_neighbour_that_contradicts_is_reported() -> None:
    # 11 is enough, 12 is not, and 13 is again: one more may hurt.
    answer = search(range(1, 65), lambda count: count >= 11 and count != 12)
    assert answer.value == 13
    assert answer.contradicting == (11,)


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [("p95_turnaround<=2", 2.0, True), ("p95_turnaround<2", 2.0, False), ("failed > 0", 3, True)],
)
def test_a_target_compares_a_figure(text: str, value: float, met: bool) -> None:
    assert Target.parse(text).is_met(value) is met


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p96_turnaround<=2", "allowed: mean_turnaround, p50_turnaround"),
        ("p95_turnaround<=fast", "'fast' is not a number"),
        ("p95_turnaround=2", "not FIGURE<=NUMBER"),
    ],
)
def test_a_wrong_target_says_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        Target.parse(text)


def test_a_variation_is_a_range_of_a_field() -> None:
    variation = Variation.parse("cluster.devices.1.count=2..10:4")
    assert [variation.change(value) for value in variation.values] == [
        "cluster.devices.1.count=2",
        "cluster.devices.1.count=6",
        "cluster.devices.1.count=10",
    ]


@pytest.mark.parametrize("text", ["cluster.gpus", "cluster.gpus=5", "=1..3", "cluster.gpus=5..1"])
def test_a_wrong_variation_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="vary: "):
        Variation.parse(text)
