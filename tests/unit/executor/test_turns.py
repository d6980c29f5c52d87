"""Whose turn it is on the machine."""

from __future__ import annotations

from collections import Counter

from services.executor.turns import next_turn, order_of_round, stretch_end

NAMES = ("a", "b", "c")


def turns_of_a_run(tasks: int, stretch: int, seed: int) -> list[tuple[int, str]]:
    """Every turn, with the round that it belongs to, if each scheduler runs its stretch."""
    next_task = dict.fromkeys(NAMES, 0)
    turns = []
    while left := {name: task for name, task in next_task.items() if task < tasks}:
        name = next_turn(NAMES, left, stretch, seed)
        turns.append((next_task[name] // stretch, name))
        next_task[name] = stretch_end(next_task[name], stretch)
    return turns


def test_each_scheduler_has_one_turn_in_each_round() -> None:
    turns = turns_of_a_run(tasks=50, stretch=10, seed=1)
    assert Counter(turns) == {(number, name): 1 for number in range(5) for name in NAMES}
    assert [number for number, _ in turns] == sorted(number for number, _ in turns)


def test_the_order_follows_from_seed_and_round() -> None:
    assert turns_of_a_run(200, 10, seed=1) == turns_of_a_run(200, 10, seed=1)
    assert turns_of_a_run(200, 10, seed=1) != turns_of_a_run(200, 10, seed=2)


def test_no_scheduler_is_always_first() -> None:
    first = Counter(order_of_round(NAMES, 5, number)[0] for number in range(3000))
    # A third of 3000 each; five deviations of a binomial are 129.
    assert all(abs(first[name] - 1000) < 129 for name in NAMES)


def test_a_scheduler_without_tasks_is_passed_over() -> None:
    order = order_of_round(NAMES, 7, 0)
    assert next_turn(NAMES, {order[1]: 3, order[2]: 0}, 10, 7) == order[1]


def test_a_stretch_that_was_interrupted_is_continued_before_the_next_round() -> None:
    assert next_turn(NAMES, {"a": 10, "b": 17, "c": 20}, 10, 3) in ("a", "b")
    assert next_turn(NAMES, {"a": 20, "b": 17, "c": 20}, 10, 3) == "b"
    assert stretch_end(17, 10) == 20
    assert stretch_end(20, 10) == 30
