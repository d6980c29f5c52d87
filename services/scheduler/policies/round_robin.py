import numpy as np

from services.scheduler.policy import Policy
from shared.spec import RunSpec
from shared.tasks import Decisions, Tasks


class RoundRobin(Policy):
    """Half of every even task on a GPU, odd tasks wholly on the CPU.

    Wins nothing by insight; it is the baseline that looks at no task at all. Loses wherever the
    tasks differ, that is, always.
    """

    name = "round_robin"

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        return Decisions(gpu_fraction=np.where(tasks.task_id % 2 == 0, 0.5, 0.0))
