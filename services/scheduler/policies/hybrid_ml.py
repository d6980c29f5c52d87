from typing import Any

import numpy as np

from services.scheduler.learned_policy import LearnedClusterPolicy
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.learning.features import FOREST_FEATURES
from shared.domain.schedulers import FOREST
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Floats, Integers, Tasks
from shared.messages.forest_model import open_model, predict, shares


class HybridMl(LearnedClusterPolicy):
    """A random forest that imitates the Oracle's share, retrained during the run; then the GPU with
    the least weighted finish time and energy.

    Strong on tasks like those it was fitted on; after the workload changes it is worse until it is
    retrained. It sees which GPU is free, but not that a queue is a reason to choose another share.
    """

    name = FOREST
    learner = FOREST

    def load_model(self, body: bytes) -> Any:
        model = open_model(body)
        predict(model, np.ones((1, len(FOREST_FEATURES)), np.float32))
        return model

    def prepare(self, tasks: Tasks, spec: RunSpec) -> Floats:
        """Before the first model: the rule of `greedy`."""
        return tasks.compute_intensity

    def prepare_with(self, model: Any, tasks: Tasks, spec: RunSpec) -> Floats:
        return shares(model, tasks, spec)

    def decide(self, tasks: Tasks, cluster: ClusterView, spec: RunSpec) -> Decisions:
        platform, weight = spec.platform, spec.learning.energy_weight
        watts = platform.watts[platform.type_of] / platform.watts.max()
        score_per_second = (1 - weight) + weight * watts
        # Devices that a task with a share, and one without, must not go to.
        not_allowed = {
            True: _others(platform.accelerators, len(platform)),
            False: _others(platform.cpus, len(platform)),
        }
        rotation = platform.rotate(tasks.task_id)
        for task in cluster.arrivals():
            share = float(cluster.prepared[task])
            part = cluster.seconds() * (share or 1.0)
            score = (1 - weight) * cluster.queued() + part * score_per_second
            score[not_allowed[share > 0]] = np.inf
            device = int(score.argmin())
            if score[device] == np.inf:  # too large as a whole; the share may fit
                device = max(int(rotation[task]), 0)
            cluster.place(device, share if share > 0 else None)
        return cluster.decisions()


def _others(devices: Integers, count: int) -> Integers:
    """All devices but these; none if there are no such devices."""
    return np.setdiff1d(np.arange(count), devices) if len(devices) else np.arange(0)
