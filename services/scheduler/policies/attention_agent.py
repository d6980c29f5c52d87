from dataclasses import dataclass
from typing import Any

import numpy as np

from services.scheduler.learned_policy import LearnedClusterPolicy
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.learning.attention_network import Array, AttentionNetwork, DeviceTypes, guarded
from shared.domain.physics import whole_seconds
from shared.domain.schedulers import ATTENTION
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.domain.times import seconds

# Scores that differ by less than this part of the mean task time are equal, and the first device
# wins: matrix products are not rounded alike on every CPU.
RESOLUTION = 2.0**-20


@dataclass(frozen=True, slots=True)
class Embedded:
    """The network, and what it makes of the tasks alone."""

    network: AttentionNetwork
    of_task: Array  # (tasks, width)
    of_types: Array  # (tasks, device types, width)


class AttentionAgent(LearnedClusterPolicy):
    """A small transformer corrects the score of a priced earliest-finish rule: it has learned by
    simulation what a placement costs the tasks behind.

    One token for the task and one for each device, so that the same model serves any cluster. It
    can keep a fast device free for what it expects to come, or send large tasks where small ones do
    not wait behind them. A choice that would finish much later than the one of `eft` is replaced by
    that one (`learning.attention.guard`). Before the first model it is `eft`.
    """

    name = ATTENTION
    learner = ATTENTION

    def load_model(self, body: bytes) -> AttentionNetwork:
        from safetensors.numpy import load

        return AttentionNetwork(load(body))

    def prepare_with(self, model: Any, tasks: Tasks, spec: RunSpec) -> Embedded:
        network: AttentionNetwork = model
        expected = whole_seconds(tasks, spec, seconds(tasks, spec))
        types = DeviceTypes.of(spec, network.running_price)
        return Embedded(network, *network.embed(expected, types))

    def decide(self, tasks: Tasks, cluster: ClusterView, spec: RunSpec) -> Decisions:
        if cluster.prepared is None:
            for _ in cluster.arrivals():
                cluster.place(cluster.finish().argmin())
            return cluster.decisions()
        prepared: Embedded = cluster.prepared
        network, of_task, of_types = prepared.network, prepared.of_task, prepared.of_types
        types = DeviceTypes.of(spec, network.running_price)
        guard = spec.learning.attention.guard
        type_of, prices = types.type_of, types.score_per_second[types.type_of]
        steps = 1.0 / (RESOLUTION * network.time_scale)
        with np.errstate(invalid="ignore"):  # a task that no device can run
            for row in cluster.arrivals():
                finish = cluster.finish()
                finish -= cluster.now
                score = cluster.seconds() * prices
                score += finish
                score += network.correction(
                    of_task[row], of_types[row][type_of], cluster.queued(), finish
                )
                device = int(np.rint(score * steps).argmin())
                earliest = int(finish.argmin())
                if guarded(finish[device], finish[earliest], guard):
                    device = earliest
                cluster.place(device, scores=score)
        return cluster.decisions()
