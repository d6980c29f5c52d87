import numpy as np

from services.scheduler.policy import Policy
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks


class CpuOnly(Policy):
    """Runs every task on the CPU."""

    name = "cpu_only"

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        return Decisions(gpu_fraction=np.zeros(len(tasks)))
