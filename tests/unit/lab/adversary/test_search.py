"""The search on made-up schedulers, whose worst instances are known."""

from __future__ import annotations

import itertools
import random

import pytest

from services.lab.adversary.search import Search
from services.lab.adversary.space import Space
from shared.domain.spec import RunSpec
from shared.errors import SpecError
from shared.messages.standing import Standing

BOUNDS = {"tasks": [4, 60], "gpus": [1, 4], "noise": 0, "dependent": 0}


def made_up(spec: RunSpec, name: str) -> Standing:
    """`loser` takes longer the more GPUs there are, the `winner` never; tasks do not matter."""
    gpus = next(device.count for device in spec.cluster.devices if device.type == "gpu")
    value = float(gpus) if name == "loser" else 1.0
    tasks = spec.tasks or 0
    return Standing(tasks=tasks, total_turnaround=value * tasks, makespan=value)


def ticks() -> itertools.count[int]:
    return itertools.count()


def search(seed: int = 1) -> Search:
    clock = ticks()
    names = ("loser", "winner")
    return Search(Space(BOUNDS), names, made_up, "turnaround", seed, clock=lambda: next(clock))


def test_the_worst_instance_is_found_and_shrunk() -> None:
    found = search().run([("loser", "winner")], 3000)
    instance = found.best["loser", "winner"]
    assert instance.ratio(("loser", "winner")) == 4.0
    # Four GPUs make the loss; nothing else is needed for it.
    assert instance.point["gpus"] == 4
    assert (instance.point["tasks"], instance.point["cpus"], instance.point["slow_gpus"]) == (
        4,
        1,
        0,
    )
    assert ("loser", "winner") in found.shrunk


def test_who_cannot_lose_has_no_ratio_above_one() -> None:
    found = search().run([("winner", "loser")], 1000)
    assert found.ratio(("winner", "loser")) == 1.0


def test_the_same_seed_finds_the_same() -> None:
    one, other = (search(7).run([("loser", "winner")], 1000) for _ in range(2))
    assert one.best["loser", "winner"].point == other.best["loser", "winner"].point


def test_points_stay_within_their_bounds() -> None:
    space, draw = Space({"load": [0.3, 0.4], "tasks": 10}), random.Random(1)
    point = space.random_point(draw)
    for _ in range(300):
        point = space.neighbour(point, draw)
        assert 0.3 <= point["load"] <= 0.4
        assert point["tasks"] == 10
    for smaller in space.smaller(point):
        assert 0.3 <= smaller["load"] <= 0.4


@pytest.mark.parametrize("wrong", [{"speed": 1}, {"load": [2, 1]}, {"load": "much"}])
def test_wrong_bounds_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(SpecError, match="bounds"):
        Space(wrong)
