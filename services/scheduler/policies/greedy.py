from services.scheduler.policy import Policy
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks


class Greedy(Policy):
    """A task's GPU share is its compute intensity; memory is ignored."""

    name = "greedy"

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        return Decisions(gpu_fraction=tasks.compute_intensity)
