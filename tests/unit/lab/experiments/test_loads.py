"""Runs at a given load, and the critical path of their tasks, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from services.lab.experiments.arrival_load import at_load
from services.lab.experiments.critical_path import critical_path
from services.lab.experiments.declaration import parse
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.domain.workload import Cursor, generate
from shared.errors import SpecError

CPUS = {"devices": [{"type": "cpu", "count": 2}]}


def work_and_span(spec: RunSpec) -> tuple[float, float]:
    """Seconds of all tasks on a CPU by the formula of the physics, and of their arrivals."""
    tasks, _ = generate(spec, Cursor(), spec.tasks or 0)
    seconds = (tasks.size / 1000) ** 1.5 / (tasks.compute_intensity + 0.5)
    return float(seconds.sum()), float(np.ptp(tasks.arrival_time))


@pytest.mark.parametrize("seed", [1, 2])
def test_the_load_is_the_work_over_what_the_devices_could_do(seed: int) -> None:
    spec = RunSpec.parse({"tasks": 500, "seed": seed, "cluster": CPUS})
    work, span = work_and_span(at_load(spec, 0.8))
    assert work / (2 * span) == pytest.approx(0.8)


def test_a_burst_has_the_mean_rate_of_the_load() -> None:
    spec = RunSpec.parse({"tasks": 500, "cluster": CPUS})
    bursty = RunSpec.parse(
        {"tasks": 500, "cluster": CPUS, "workload": {"arrivals": {"kind": "bursty"}}}
    )
    rates = [at_load(each, 0.5).workload.arrival_rate for each in (spec, bursty)]
    assert rates[0] == rates[1]
    assert at_load(bursty, 0.5).workload.arrivals == bursty.workload.arrivals


def test_one_task_has_no_load() -> None:
    with pytest.raises(SpecError, match="use more tasks"):
        at_load(RunSpec.parse({"tasks": 1}), 0.5)


def test_a_variant_has_its_own_load_or_the_experiments() -> None:
    declared: dict[str, Any] = {
        "name": "mine", "title": "Mine", "question": "?", "tasks": 200, "figures": ["sweep"],
        "load": 0.4, "variants": {"a": {}, "b": {"load": 0.8}},
    }  # fmt: skip
    mine = parse(declared, "mine")
    rates = {v: mine.run_spec(v, 3).workload.arrival_rate for v in ("a", "b")}
    assert rates["b"] == pytest.approx(2 * rates["a"])


def tasks_of(sizes: list[float], arrivals: list[float], parents: list[list[int]]) -> Tasks:
    n = len(sizes)
    half = np.full(n, 0.5)
    return Tasks(np.arange(n), np.array(sizes), half, np.zeros(n), np.array(arrivals), parents)


def test_the_critical_path_is_the_longest_chain_of_the_fastest_times() -> None:
    # Size 1000 at intensity 0.5: 1 s on a CPU, 1 / (1 + 3 * 0.5) = 0.4 s on a GPU.
    chained = tasks_of([1000] * 4, [10, 10, 10, 10.1], [[], [0], [], [1]])
    assert critical_path(chained, RunSpec.parse({})) == pytest.approx(1.2)
    late = tasks_of([1000] * 3, [10, 10, 13], [[], [0], [1]])
    assert critical_path(late, RunSpec.parse({})) == pytest.approx(3.4)
