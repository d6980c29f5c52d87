from typing import Any

import numpy as np

from services.scheduler.learned_policy import LearnedPolicy
from shared.domain.features import FOREST_FEATURES
from shared.domain.physics import price
from shared.domain.schedulers import FOREST
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Floats, Integers, Tasks
from shared.domain.times import seconds
from shared.messages.forest_model import open_model, predict, shares


class HybridMl(LearnedPolicy):
    """A random forest that imitates the Oracle's share, retrained during the run.

    Strong on tasks like those it was fitted on; after the workload changes it is worse until it is
    retrained. Among several types of accelerator it takes the one with the least weighted time and
    energy.
    """

    name = FOREST
    learner = FOREST

    def load_model(self, body: bytes) -> Any:
        model = open_model(body)
        predict(model, np.ones((1, len(FOREST_FEATURES)), np.float32))
        return model

    def decide_with(self, model: Any, tasks: Tasks, spec: RunSpec) -> Decisions:
        share = shares(model, tasks, spec)
        return Decisions(gpu_fraction=share, device=best_accelerator(tasks, share, spec))


def best_accelerator(tasks: Tasks, share: Floats, spec: RunSpec) -> Integers | None:
    """The type with the lowest weighted time and energy for each task's share; its devices take
    turns by task id. None where there is nothing to choose."""
    platform, weight = spec.platform, spec.learning.energy_weight
    kinds = [number for number, each in enumerate(platform.types) if each.accelerator]
    if len(kinds) < 2:
        return None
    times = seconds(tasks, spec)
    scores = []
    for kind in kinds:
        device = platform.of_type[kind][tasks.task_id % platform.counts[kind]]
        priced = price(tasks, share, spec, device, times=times)
        scores.append((1 - weight) * priced.time + weight * priced.energy / platform.watts.max())
    return platform.rotate_within(np.array(kinds)[np.argmin(scores, axis=0)], tasks.task_id)
