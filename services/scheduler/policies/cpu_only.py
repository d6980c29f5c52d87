import numpy as np

from services.scheduler.policy import Policy
from shared.spec import RunSpec
from shared.tasks import Decisions, Tasks


class CpuOnly(Policy):
    """Everything on the CPU. The cheapest; right for small tasks that move much data."""

    name = "cpu_only"

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        return Decisions(gpu_fraction=np.zeros(len(tasks)))
