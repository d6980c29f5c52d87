import numpy as np

from services.scheduler.policy import ClusterPolicy
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks


class LeastLoaded(ClusterPolicy):
    """The device with the least queued work, however long it takes for the task.

    Opportunistic load balancing (OLB) in Braun et al.: "A comparison of eleven static heuristics
    for mapping a class of independent tasks onto heterogeneous computing systems", 2001.
    """

    name = "least_loaded"

    def decide(self, tasks: Tasks, cluster: ClusterView, spec: RunSpec) -> Decisions:
        for _ in cluster.arrivals():
            possible = np.isfinite(cluster.seconds())
            cluster.place(np.where(possible, cluster.queued(), np.inf).argmin())
        return cluster.decisions()
