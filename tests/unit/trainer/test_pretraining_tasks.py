"""The tasks that learners are pre-trained on."""

from __future__ import annotations

import numpy as np

from services.trainer.pretraining import pretraining_tasks
from shared.domain.spec import RunSpec
from shared.domain.workload import Cursor, generate


def test_they_are_of_the_runs_workload_but_not_its_tasks() -> None:
    spec = RunSpec.parse({"seed": 3, "workload": {"preset": "readme"}})
    tasks = pretraining_tasks(spec)
    coming, _ = generate(spec, Cursor(), 1000)
    assert len(tasks) == 1000
    assert ((tasks.size >= 500) & (tasks.size <= 1500)).all()
    assert not np.isin(tasks.size, coming.size).any()


def test_they_do_not_include_the_drift_of_the_workload() -> None:
    drift = [{"after": 100, "preset": "cpu_friendly"}]
    spec = RunSpec.parse({"workload": {"preset": "gpu_friendly", "drift": drift}})
    tasks = pretraining_tasks(spec)
    # GPU-friendly tasks need at most 200 MB, CPU-friendly ones 3000 at least.
    assert tasks.memory_required.max() <= 200
