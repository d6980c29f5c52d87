import numpy as np

from services.scheduler.policy import Policy
from shared.domain.random_numbers import uniform
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks


class Random(Policy):
    """A uniform random GPU share, hashed from (seed, task id) so that all replicas agree."""

    name = "random"

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        return Decisions(gpu_fraction=uniform(spec.seed, tasks.task_id.astype(np.uint64)))
