from services.scheduler.policy import Policy
from shared.domain.physics import fastest
from shared.domain.schedulers import ORACLE
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks


class Oracle(Policy):
    """The devices and the share with the least execution time, from the physics itself.

    No scheduler has a lower execution time per task. It ignores queues, so others can have a
    shorter makespan or wait.
    """

    name = ORACLE
    knows_real_times = True

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        return fastest(tasks, spec)
