"""What is shown of a choice: the best devices, the chosen one, and what decided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from services.gateway.analysis.device_work import Work
from services.gateway.tasks.choices import choice_of
from services.gateway.tasks.schemas import Choice
from shared.domain.spec import RunSpec

GPUS = 20
SPEC = RunSpec.parse({"schedulers": ["eft"], "cluster": {"gpus": GPUS, "cpus": 1}})
# Device 3 is still busy for 2 seconds with one task, and then for 1.5 with another.
BUSY = Work(
    np.array([1, 2]),
    np.array([3, 3]),
    np.array([9.0, 12.0]),
    np.array([3.0, 1.5]),
    np.zeros(2, bool),
    np.zeros(2, bool),
    np.ones(2),
)


def choice(device: int, scores: list[float], **fields: Any) -> Choice:
    """The choice for a task that arrives at 10 and takes 2 s on a GPU; no CPU can run it."""
    row = {
        "scheduler": "my_learner",
        "task_id": 7,
        "arrival_time": 10.0,
        "device": device,
        "cpu": -1,
        "width": 1,
        "gpu_time": 2.0,
        "cpu_time": 0.0,
        "model_version": 4,
        "explored": False,
        "probability": 1.0,
        "predicted": [1.5, -1.0],
        "scores": scores,
        **fields,
    }
    return choice_of(row, SPEC, np.array([2.0, np.inf]), BUSY, None)


SCORES = [*(float(number) for number in range(GPUS, 0, -1)), 1e100]  # the last GPU is the best


def test_the_ten_best_devices_are_listed_and_the_chosen_one() -> None:
    found = choice(3, SCORES)
    names = [device.device for device in found.devices]
    assert names == [f"gpu_{number}" for number in range(19, 9, -1)] + ["gpu_3"]
    last = found.devices[-1]
    assert (last.chosen, last.score, last.queued) == (True, 17.0, 3.5)
    assert (last.predicted, last.expected) == (1.5, 2.0)
    assert [device.queued for device in found.devices[:-1]] == [0.0] * 10
    assert found.compared == GPUS + 1


@pytest.mark.parametrize(
    ("device", "explored", "overruled"), [(19, False, False), (18, False, True), (18, True, False)]
)
def test_a_choice_that_is_neither_best_nor_explored_was_overruled(
    device: int, explored: bool, overruled: bool
) -> None:
    assert choice(device, SCORES, explored=explored).overruled == overruled


def test_scores_that_differ_by_rounding_are_equal() -> None:
    scores = [5.0] * 19 + [5.0 - 1e-6, 9.0]
    assert not choice(0, scores).overruled


def test_a_device_that_cannot_run_the_task_has_no_score() -> None:
    """Stored as a huge number, or as infinity."""
    for impossible in (1e100, float("inf"), float("nan")):
        found = choice(0, [1.0] * 3 + [impossible] * 18)
        assert [device.score for device in found.devices] == [1.0] * 3 + [None] * 7
    cpu = choice(0, [impossible] * 20 + [1.0]).devices[0]
    assert (cpu.type, cpu.predicted, cpu.expected) == ("cpu", None, None)
