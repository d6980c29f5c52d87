from typing import Any

import numpy as np

from services.scheduler.learned import LearnedPolicy
from shared.features import FOREST_FEATURES
from shared.forest import open_model, predict, shares
from shared.models import FOREST
from shared.spec import RunSpec
from shared.tasks import Decisions, Tasks


class HybridMl(LearnedPolicy):
    """A random forest that imitates the Oracle's share, retrained while the stream flows.

    Wins wherever tasks like the present ones were seen before; loses for a moment when the workload
    changes, until it is retrained. A task that is nearly whole on one device goes there as a whole,
    so that it waits in one queue only. The GPUs of a cluster are alike, so the weighted time and
    energy of a share is the same on each of them: they take turns by task id.
    """

    name = "hybrid_ml"
    learner = FOREST

    def open(self, body: bytes) -> Any:
        model = open_model(body)
        predict(model, np.ones((1, len(FOREST_FEATURES)), np.float32))
        return model

    def decide_with(self, model: Any, tasks: Tasks, spec: RunSpec) -> Decisions:
        return Decisions(gpu_fraction=shares(model, tasks, spec))
