"""How much earlier or later a task starts than at the end of its device's queue."""

from __future__ import annotations

import numpy as np

from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats


def first_come(spec: RunSpec) -> bool:
    """Whether every task of the run starts when its device has finished all earlier tasks."""
    workload = spec.workload
    waits = workload.dependencies.probability > 0 or workload.dependencies.workflow
    return not (spec.submitted or workload.widths or waits)


def start_delay(cluster: ClusterView) -> Floats:
    """How much later than at the end of the queue the task runs on each device: below 0 in an idle
    gap, above 0 if it waits for parents or other devices."""
    with np.errstate(invalid="ignore"):
        later: Floats = cluster.finish() - cluster.available() - cluster.seconds()
    return np.nan_to_num(later, copy=False)  # infinite where the task cannot run
