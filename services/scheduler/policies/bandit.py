from dataclasses import dataclass
from typing import Any

import numpy as np

from services.scheduler.learned_policy import LearnedClusterPolicy
from services.scheduler.start_delay import first_come, start_delay
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.learning import bandit_features
from shared.domain.learning.bandit_features import COMMON
from shared.domain.learning.price_search import IMPOSSIBLE
from shared.domain.physics import whole_seconds
from shared.domain.portable_math import normal_quantile
from shared.domain.random_numbers import uniform
from shared.domain.schedulers import BANDIT
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Floats, Tasks
from shared.domain.times import seconds

SAMPLE = 100  # purposes of random numbers: from this one on, one for each coefficient


@dataclass(frozen=True, slots=True)
class Prepared:
    """The sampled cost of each task (row) on each device type (column)."""

    alone: Floats  # without a queue
    per_load: Floats  # for each second queued in the cluster
    per_wait: Floats  # for each second queued on the device


class Bandit(LearnedClusterPolicy):
    """Linear Thompson sampling: for each task it draws coefficients from what it believes about the
    cost of queues and device time, and takes the device that is cheapest by these.

    The cheapest learner: a handful of coefficients. What a placement costs is the task's turnaround
    and the delay of the tasks behind it; before the first results it decides by earliest finish.
    """

    name = BANDIT
    learner = BANDIT

    def load_model(self, body: bytes) -> Any:
        from safetensors.numpy import load

        model = load(body)
        size = len(model["centre"])
        if model["root"].shape != (size, size) or not model["scale"][0] > 0:
            raise ValueError("not the model of a bandit")
        return model

    def prepare_with(self, model: Any, tasks: Tasks, spec: RunSpec) -> Prepared:
        types, doubt = len(spec.platform.types), spec.learning.bandit.doubt
        if len(model["centre"]) != bandit_features.count(types):
            raise ValueError(f"a model of other device types than the {types} of the cluster")
        drawn = sampled(model["centre"], model["root"] * doubt, spec.seed, tasks)
        drawn = np.maximum(drawn, bandit_features.least(types)[:, None])
        queue, load, wait = drawn[: len(COMMON)]
        times = np.minimum(whole_seconds(tasks, spec, seconds(tasks, spec)), IMPOSSIBLE)
        scale = float(model["scale"][0])
        return Prepared(
            times * drawn[len(COMMON) :].T,
            times * (load / (scale * len(spec.platform)))[:, None],
            times * (wait / scale)[:, None] + queue[:, None],
        )

    def decide(self, tasks: Tasks, cluster: ClusterView, spec: RunSpec) -> Decisions:
        known, type_of, simple = cluster.prepared, spec.platform.type_of, first_come(spec)
        if known is None:  # no model yet: earliest finish
            for _ in cluster.arrivals():
                cluster.place(cluster.finish().argmin())
            return cluster.decisions()
        for row in cluster.arrivals():
            queued = cluster.queued()
            cost = known.per_wait[row].take(type_of)
            cost *= queued
            cost += (known.per_load[row] * np.add.reduce(queued) + known.alone[row]).take(type_of)
            if not simple:
                cost += start_delay(cluster)
            cluster.place(cost.argmin(), scores=cost)
        return cluster.decisions()


def sampled(centre: Floats, root: Floats, seed: int, tasks: Tasks) -> Floats:
    """Each coefficient (row) for each task (column), from (seed, task id) alone. No matrix product:
    these sums have the same bits on every CPU."""
    counter = tasks.task_id.astype(np.uint64)
    normal = [
        normal_quantile(np.maximum(uniform(seed, counter, SAMPLE + number), 2.0**-54))
        for number in range(len(centre))
    ]
    drawn = np.repeat(centre[:, None], len(tasks), axis=1)
    for row in range(len(centre)):
        for column in range(row + 1):
            drawn[row] += float(root[row, column]) * normal[column]
    return drawn
