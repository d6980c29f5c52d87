import numpy as np

from services.scheduler.policy import Policy
from shared.spec import RunSpec
from shared.tasks import Decisions, Tasks


class GpuOnly(Policy):
    """Everything on a GPU. Right for large, intense tasks; pays the transfer on all others."""

    name = "gpu_only"

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        return Decisions(gpu_fraction=np.ones(len(tasks)))
