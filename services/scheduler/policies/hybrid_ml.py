from typing import Any

import numpy as np

from services.scheduler.learned_policy import LearnedPolicy
from shared.domain.features import FOREST_FEATURES
from shared.domain.schedulers import FOREST
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.messages.forest_model import open_model, predict, shares


class HybridMl(LearnedPolicy):
    """A random forest that imitates the Oracle's share, retrained during the run.

    Strong on tasks like those it was fitted on; after the workload changes it is worse until it is
    retrained. The GPUs are identical, so they are used in rotation by task id.
    """

    name = FOREST
    learner = FOREST

    def load_model(self, body: bytes) -> Any:
        model = open_model(body)
        predict(model, np.ones((1, len(FOREST_FEATURES)), np.float32))
        return model

    def decide_with(self, model: Any, tasks: Tasks, spec: RunSpec) -> Decisions:
        return Decisions(gpu_fraction=shares(model, tasks, spec))
