from services.scheduler.policy import Policy
from shared.physics import fastest_share
from shared.spec import RunSpec
from shared.tasks import Decisions, Tasks


class Oracle(Policy):
    """Tries every share and takes the one with the least execution time.

    The floor of execution time per task: nobody beats it there. It knows nothing of queues, so it
    may be beaten on makespan and waiting.
    """

    name = "oracle"

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        return Decisions(gpu_fraction=fastest_share(tasks, spec))
