"""Small models and results for the tests of `attention_agent`."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from services.trainer.learner import Results
from services.trainer.learners.attention_agent import AttentionLearner
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Integers, Tasks
from shared.domain.workload import Cursor, generate
from tests.unit.trainer.own_results import simulated

# Enough to learn something in a second.
SMALL = {
    "base_rounds": 1,
    "base_states": 512,
    "own_rounds": 1,
    "own_states": 64,
    "horizon": 40,
    "warm_up": 30,
    "streams": 16,
    "steps": 40,
    "learn_states": 64,
    "learn_steps": 10,
    "judge_streams": 16,
    "judge_tasks": 60,
}


def spec_of(rate: float = 24, noise: float = 0.0, **settings: Any) -> RunSpec:
    return RunSpec.parse(
        {
            "seed": 3,
            "workload": {"preset": "hpc", "arrival_rate": rate},
            "physics": {"noise": noise},
            "learning": {"attention": SMALL | settings},
        }
    )


def tasks_of(spec: RunSpec, count: int, seed: int = 11) -> Tasks:
    return generate(spec.model_copy(update={"seed": seed}), Cursor(), count)[0]


@cache
def pretrained(spec: str) -> bytes:
    """The first model of a run."""
    run_spec = RunSpec.model_validate_json(spec)
    update = AttentionLearner(run_spec).pretrain(tasks_of(run_spec, 300))
    assert update is not None
    return update.body


def results_of(tasks: Tasks, device: Integers, spec: RunSpec) -> Results:
    """The results of whole tasks on these devices."""
    platform = spec.platform
    on_accelerator = np.isin(device, platform.accelerators)
    decisions = Decisions(
        gpu_fraction=np.where(on_accelerator, 1.0, 0.0),
        device=np.where(on_accelerator, device, platform.accelerators[0]),
        cpu=np.where(on_accelerator, platform.cpus[0], device),
    )
    return simulated(tasks, decisions, spec)
