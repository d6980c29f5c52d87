"""What the learners are pre-trained on."""

from __future__ import annotations

import numpy as np

from services.trainer.learning import practice
from shared.spec import RunSpec
from shared.workload import Cursor, generate


def test_it_is_of_the_runs_workload_but_not_its_tasks() -> None:
    spec = RunSpec.parse({"seed": 3, "workload": {"preset": "readme"}})
    tasks = practice(spec)
    coming, _ = generate(spec, Cursor(), 1000)
    assert len(tasks) == 1000
    assert ((tasks.size >= 500) & (tasks.size <= 1500)).all()
    assert not np.isin(tasks.size, coming.size).any()


def test_it_does_not_know_what_the_workload_will_change_to() -> None:
    drift = [{"after": 100, "preset": "cpu_friendly"}]
    spec = RunSpec.parse({"workload": {"preset": "gpu_friendly", "drift": drift}})
    tasks = practice(spec)
    # GPU-friendly tasks need at most 200 MB, CPU-friendly ones 3000 at least.
    assert tasks.memory_required.max() <= 200
