from services.scheduler.policy import Policy
from shared.spec import RunSpec
from shared.tasks import Decisions, Tasks


class Greedy(Policy):
    """The share of a task on the GPU is its compute intensity.

    Strong where intensity alone decides; loses on tasks that compute much but move even more data,
    because it does not look at memory.
    """

    name = "greedy"

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        return Decisions(gpu_fraction=tasks.compute_intensity)
