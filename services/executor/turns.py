"""Whose turn it is to have the machine.

A stretch is `stretch_tasks` tasks. In every round each scheduler has the machine for one stretch,
in an order drawn from the seed and the round, so that no scheduler always runs when the machine is
warm, or always after the same other one. Whose turn it is follows from how far each scheduler is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from shared.domain.random_numbers import uniform

TURN_DRAW = 0x5475  # purpose of the random numbers that order a round; never changes


def order_of_round(schedulers: Sequence[str], seed: int, number: int) -> list[str]:
    counters = np.arange(len(schedulers), dtype=np.uint64) + np.uint64(number * len(schedulers))
    draws = uniform(seed, counters, TURN_DRAW)
    return [schedulers[i] for i in np.argsort(draws, kind="stable")]


def next_turn(
    schedulers: Sequence[str], next_task: Mapping[str, int], stretch_tasks: int, seed: int
) -> str:
    """The scheduler whose turn it is. `schedulers`: all of the run; `next_task`: by scheduler that
    has a task to run."""
    rounds = {name: task // stretch_tasks for name, task in next_task.items()}
    number = min(rounds.values())
    order = order_of_round(schedulers, seed, number)
    return next(name for name in order if rounds.get(name) == number)


def stretch_end(next_task: int, stretch_tasks: int) -> int:
    """The first task after the stretch that this one belongs to."""
    return (next_task // stretch_tasks + 1) * stretch_tasks
