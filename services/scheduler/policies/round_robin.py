import numpy as np

from services.scheduler.policy import Policy
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks


class RoundRobin(Policy):
    """Half of each even task on a GPU, odd tasks on the CPU: the baseline that ignores the task."""

    name = "round_robin"

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        return Decisions(gpu_fraction=np.where(tasks.task_id % 2 == 0, 0.5, 0.0))
