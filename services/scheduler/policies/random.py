import numpy as np

from services.scheduler.policy import Policy
from shared.draws import uniform
from shared.spec import RunSpec
from shared.tasks import Decisions, Tasks


class Random(Policy):
    """A share drawn evenly from 0..1.

    The draw is a hash of (seed, task id), so that every replica, and every restart, draws the same.
    Beats a rule only where the rule is wrong.
    """

    name = "random"

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        return Decisions(gpu_fraction=uniform(spec.seed, tasks.task_id.astype(np.uint64)))
