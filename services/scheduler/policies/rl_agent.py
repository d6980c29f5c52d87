from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.scheduler.learned_policy import LearnedClusterPolicy
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.learning.agent_actions import AgentActions
from shared.domain.learning.features import AGENT_FEATURES, Matrix, agent_state
from shared.domain.portable_math import exp
from shared.domain.random_numbers import uniform
from shared.domain.schedulers import AGENT
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Floats, Integers, Tasks

Weights = dict[str, NDArray[np.float32]]

BLOCK = 64  # rows whose Q-values are computed at once

EXPLORE, CHOOSE = 1, 2  # purposes of random numbers: whether to explore, and which action to try


class RlAgent(LearnedClusterPolicy):
    """A dueling DQN that places each task as a whole, on the CPU or on one of the GPUs.

    Epsilon-greedy, with random numbers from (seed, task id), so that all replicas agree. When
    results differ from what the learner predicted, the model asks for more exploration, half of it
    on the CPU. It cannot split a task, so it is worse where splitting is best.

    With `learning.agent.observes: task` it looks at the task alone, and GPUs whose Q-values differ
    by less than `indifference` are used in rotation. With `cluster` it sees the queues, too.
    """

    name = AGENT
    learner = AGENT

    def load_model(self, body: bytes) -> Any:
        from safetensors.numpy import load

        weights: Weights = load(body)
        features = np.ones((1, len(AGENT_FEATURES)), np.float32)
        if weights["body.0.weight"].shape[1] == len(AGENT_FEATURES):
            q_values(weights, features)
        else:
            queued = np.zeros(len(weights["advantage.bias"]))
            QueueNetwork(weights, features).q_values(0, queued)
        float(weights["exploration"].item())
        return weights

    def prepare(self, tasks: Tasks, spec: RunSpec) -> Decisions | None:
        """Before the first model: the rule of `greedy`, or of `eft` if it observes the cluster."""
        if observes_cluster(spec):
            return None
        return Decisions(gpu_fraction=tasks.compute_intensity)

    def prepare_with(self, model: Any, tasks: Tasks, spec: RunSpec) -> Decisions | Prepared:
        """Complete decisions, unless it observes the cluster."""
        actions = AgentActions(spec.platform)
        outputs = len(model["advantage.bias"])
        if outputs != len(actions):
            raise ValueError(f"a model of {outputs} actions in a cluster of {len(actions)}")
        exploration = Exploration(model, tasks, spec, len(actions))
        if observes_cluster(spec):
            cost_of_waiting = 1 - spec.learning.energy_weight
            return Prepared(QueueNetwork(model, agent_state(tasks), cost_of_waiting), exploration)
        q = q_values(model, agent_state(tasks))
        best = best_action(q, tasks.task_id, spec.learning.agent.indifference, actions.devices)
        action = np.where(exploration.explored, exploration.tried, best)
        return Decisions(
            gpu_fraction=np.where(action > 0, 1.0, 0.0),
            device=actions.device(action, tasks.task_id),
            explored=exploration.explored,
            probability=exploration.probability(action, best),
        )

    def decide(self, tasks: Tasks, cluster: ClusterView, spec: RunSpec) -> Decisions:
        prepared: Prepared | None = cluster.prepared
        actions = AgentActions(spec.platform)
        for row in cluster.arrivals():
            finish = cluster.finish()
            if prepared is None or np.isinf(finish.min()):
                cluster.place(finish.argmin())
                continue
            # A task that does not fit an accelerator's memory must not go there.
            possible = np.isfinite(actions.least(finish[None], np.inf)[0])
            queued = actions.least(cluster.queued()[None])[0]
            q = np.where(possible, prepared.network.q_values(row, queued), -np.inf)
            action, explored, probability = prepared.exploration.choose(row, int(q.argmax()), q)
            members = actions.members[action]
            cluster.place(
                members[finish[members].argmin()],
                probability=probability,
                explored=explored,
                scores=-prepared.network.scale * q[actions.action_of_device],
            )
        return cluster.decisions()


class Exploration:
    """Which tasks of a batch try an action at random, and which one; drawn from (seed, task id)."""

    def __init__(self, model: Weights, tasks: Tasks, spec: RunSpec, actions: int) -> None:
        self._gpus = actions - 1
        scheduled, requested = epsilon(tasks.task_id, spec), model["exploration"]
        self._p_explore = np.maximum(scheduled, requested)
        # After a surprise the question is whether the other kind of device is better.
        self._p_cpu = np.where(requested > scheduled, 0.5, 1 / actions)
        counter = tasks.task_id.astype(np.uint64)
        self.explored = uniform(spec.seed, counter, EXPLORE) < self._p_explore
        self.tried = random_action(uniform(spec.seed, counter, CHOOSE), self._p_cpu, self._gpus)

    def probability(self, action: Integers, best: Integers) -> Floats:
        return probability(action, best, self._p_explore, self._p_cpu, self._gpus)

    def choose(self, row: int, best: int, q: Floats) -> tuple[int, bool, float]:
        """The action of one task, whether it explores, and the probability of that. What is
        impossible (a value of minus infinity) is not tried."""
        explored = bool(self.explored[row]) and q[self.tried[row]] > -np.inf
        action = int(self.tried[row]) if explored else best
        p_explore, p_cpu = float(self._p_explore[row]), float(self._p_cpu[row])
        tried = p_cpu if action == 0 else (1 - p_cpu) / self._gpus
        return action, explored, p_explore * tried + (1 - p_explore) * (action == best)


class QueueNetwork:
    """The Q-values of an agent that observes the cluster, for one task of a batch after the other.
    What needs no queues is computed for the whole batch."""

    def __init__(self, weights: Weights, state: Matrix, cost_of_waiting: float = 0.0) -> None:
        features = state.shape[1]
        first = weights["body.0.weight"]
        normal = (in_blocks(state) - weights["centre"]) / weights["spread"]
        of_task = normal @ first[:, :features].T + weights["body.0.bias"]
        self._of_task = of_task.reshape(-1, len(first))
        self._of_queues = np.ascontiguousarray(first[:, features:])
        self._body, self._body_bias = weights["body.2.weight"], weights["body.2.bias"]
        value, advantage = weights["value.weight"], weights["advantage.weight"]
        self._output = value + advantage - advantage.mean(axis=0)
        bias = weights["advantage.bias"]
        self._output_bias = weights["value.bias"] + bias - bias.mean()
        self.scale = float(weights["scale"].item())
        self._cost_of_waiting = cost_of_waiting

    def q_values(self, row: int, queued: Floats) -> Floats:
        """`queued`: of each action, in seconds."""
        waits = queued / self.scale
        inputs = (waits / (1 + waits)).astype(np.float32)
        hidden = np.maximum(self._of_task[row] + self._of_queues @ inputs, 0.0)
        hidden = np.maximum(self._body @ hidden + self._body_bias, 0.0)
        q: Floats = self._output @ hidden + self._output_bias - self._cost_of_waiting * waits
        return q


@dataclass(frozen=True, slots=True)
class Prepared:
    network: QueueNetwork
    exploration: Exploration


def observes_cluster(spec: RunSpec) -> bool:
    return spec.learning.agent.observes == "cluster"


def q_values(weights: Weights, state: Matrix) -> Floats:
    """The network of `services/trainer/dueling_network.py` in numpy: workers need no torch."""
    rows, blocks = len(state), in_blocks(state)
    hidden = (blocks - weights["centre"]) / weights["spread"]
    for layer in ("body.0", "body.2"):
        hidden = np.maximum(hidden @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"], 0.0)
    advantage = hidden @ weights["advantage.weight"].T + weights["advantage.bias"]
    value = hidden @ weights["value.weight"].T + weights["value.bias"]
    q: Floats = value + advantage - advantage.mean(axis=2, keepdims=True)
    return q.reshape(-1, q.shape[2])[:rows]


def in_blocks(state: Matrix) -> Matrix:
    """Blocks of a fixed size, the last one filled up: a product of matrices of another size may
    differ in the last bit, and how tasks are cut into batches must not change a decision."""
    filled = np.concatenate([state, np.zeros((-len(state) % BLOCK, state.shape[1]), np.float32)])
    return filled.reshape(-1, BLOCK, state.shape[1])


def best_action(q: Floats, task_id: Integers, indifference: float, devices: Integers) -> Integers:
    """The action of the highest Q-value; GPUs about as good as the best one rotate by task id, each
    action as often as it has devices.

    The network's error grows with the task, so "about as good" is relative to the Q-value, or to
    the average reward (1) if that is larger.
    """
    gpus = q[:, 1:]
    best = gpus.max(axis=1, keepdims=True)
    equal = gpus >= best - indifference * np.maximum(np.abs(best), 1.0)
    until = np.cumsum(equal * devices, axis=1)
    turn = task_id % until[:, -1]
    chosen = (until > turn[:, None]).argmax(axis=1)
    return np.where(gpus.max(axis=1) > q[:, 0], chosen + 1, 0)


def epsilon(task_id: Integers, spec: RunSpec) -> Floats:
    rule = spec.learning.agent
    start = rule.epsilon_start if spec.learning.pretrain_tasks else rule.epsilon_cold
    decay = exp(-task_id / rule.epsilon_tasks)
    return np.asarray(rule.epsilon_end + (start - rule.epsilon_end) * decay)


def random_action(draw: Floats, p_cpu: Floats, gpus: int) -> Integers:
    """The CPU with probability `p_cpu`, else one of the GPUs, all equally likely."""
    gpu = np.floor((draw - p_cpu) / (1 - p_cpu) * gpus)
    # Rounding can give one more than the last GPU.
    return np.where(draw < p_cpu, 0, 1 + np.minimum(gpu, gpus - 1)).astype(np.int64)


def probability(
    action: Integers,
    best: Integers,
    p_explore: Floats,
    p_cpu: Floats,
    gpus: int,
) -> Floats:
    """The probability of the action taken, exploration included."""
    tried = np.where(action == 0, p_cpu, (1 - p_cpu) / gpus)
    exploited = np.where(action == best, 1 - p_explore, 0.0)
    return np.asarray(p_explore * tried + exploited)
