import numpy as np

from services.scheduler.policy import Policy
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks


class GpuOnly(Policy):
    """Runs every task on a GPU."""

    name = "gpu_only"

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        return Decisions(gpu_fraction=np.ones(len(tasks)))
