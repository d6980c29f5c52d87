import numpy as np

from services.scheduler.policy import ClusterPolicy
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Floats, Integers, Tasks
from shared.domain.times import seconds


class Heft(ClusterPolicy):
    """Earliest finish, for tasks that arrive together in the order of the longest path behind them.

    Topcuoglu, Hariri, Wu: "Performance-effective and low-complexity task scheduling for
    heterogeneous computing", 2002. The rank of a task is its mean time over all devices and the
    highest rank of its children. Where tasks arrive one by one it is `eft`.
    """

    name = "heft"

    def prepare(self, tasks: Tasks, spec: RunSpec) -> Integers | None:
        """The order in which tasks are placed; None: by id."""
        if not tasks.parents:
            return None
        rank = upward_ranks(tasks, _mean_seconds(tasks, spec))
        return np.lexsort((tasks.task_id, -rank, tasks.arrival_time))

    def decide(self, tasks: Tasks, cluster: ClusterView, spec: RunSpec) -> Decisions:
        for _ in cluster.arrivals(cluster.prepared):
            cluster.place(cluster.finish().argmin())
        return cluster.decisions()


def _mean_seconds(tasks: Tasks, spec: RunSpec) -> Floats:
    """Over all devices that can run the task."""
    times, counts = seconds(tasks, spec), spec.platform.counts
    possible = np.isfinite(times)
    devices = np.maximum((possible * counts).sum(axis=1), 1)
    return np.asarray((np.where(possible, times, 0.0) * counts).sum(axis=1) / devices)


def upward_ranks(tasks: Tasks, mean_seconds: Floats) -> Floats:
    """Each task's own seconds and those of the longest path of tasks behind it in this batch."""
    first, rank = int(tasks.task_id[0]), mean_seconds.tolist()
    behind = [0.0] * len(rank)
    for row in range(len(rank) - 1, -1, -1):
        rank[row] += behind[row]
        for parent in tasks.parents[row]:
            if parent >= first:
                behind[parent - first] = max(behind[parent - first], rank[row])
    return np.array(rank)
