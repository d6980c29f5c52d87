from services.scheduler.policy import ClusterPolicy
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks


class EarliestFinish(ClusterPolicy):
    """The device on which the task is expected to finish first, queues included.

    Minimum completion time (MCT) in Maheswaran, Ali, Siegel, Hensgen, Freund: "Dynamic mapping of a
    class of independent tasks onto heterogeneous computing systems", 1999; `dmda` in StarPU.
    """

    name = "eft"

    def decide(self, tasks: Tasks, cluster: ClusterView, spec: RunSpec) -> Decisions:
        for _ in cluster.arrivals():
            cluster.place(cluster.finish().argmin())
        return cluster.decisions()
