from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.scheduler.learned_policy import LearnedPolicy
from shared.domain.agent_actions import AgentActions
from shared.domain.features import AGENT_FEATURES, Matrix, agent_state
from shared.domain.portable_math import exp
from shared.domain.random_numbers import uniform
from shared.domain.schedulers import AGENT
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Floats, Integers, Tasks

Weights = dict[str, NDArray[np.float32]]

BLOCK = 64  # rows whose Q-values are computed at once

EXPLORE, CHOOSE = 1, 2  # purposes of random numbers: whether to explore, and which action to try


class RlAgent(LearnedPolicy):
    """A dueling DQN that places each task as a whole, on the CPU or on one of the GPUs.

    Epsilon-greedy, with random numbers from (seed, task id), so that all replicas agree. When
    results differ from what the learner predicted, the model asks for more exploration, half of it
    on the CPU. GPUs whose Q-values differ by less than `indifference` are used in rotation. It
    cannot split a task, so it is worse where splitting is best.
    """

    name = AGENT
    learner = AGENT

    def load_model(self, body: bytes) -> Any:
        from safetensors.numpy import load

        weights: Weights = load(body)
        q_values(weights, np.ones((1, len(AGENT_FEATURES)), np.float32))
        float(weights["exploration"].item())
        return weights

    def decide_with(self, model: Any, tasks: Tasks, spec: RunSpec) -> Decisions:
        q, actions = q_values(model, agent_state(tasks)), AgentActions(spec.platform)
        gpus = len(actions) - 1
        if q.shape[1] != len(actions):
            raise ValueError(f"a model of {q.shape[1]} actions in a cluster of {len(actions)}")
        indifference = spec.learning.agent.indifference
        best = best_action(q, tasks.task_id, indifference, actions.devices)
        scheduled, requested = epsilon(tasks.task_id, spec), model["exploration"]
        p_explore = np.maximum(scheduled, requested)
        # After a surprise the question is whether the other kind of device is better.
        p_cpu = np.where(requested > scheduled, 0.5, 1 / (gpus + 1))
        counter = tasks.task_id.astype(np.uint64)
        explored = uniform(spec.seed, counter, EXPLORE) < p_explore
        tried = random_action(uniform(spec.seed, counter, CHOOSE), p_cpu, gpus)
        action = np.where(explored, tried, best)
        return Decisions(
            gpu_fraction=np.where(action > 0, 1.0, 0.0),
            device=actions.device(action, tasks.task_id),
            explored=explored,
            probability=probability(action, best, p_explore, p_cpu, gpus),
        )


def q_values(weights: Weights, state: Matrix) -> Floats:
    """The network of `services/trainer/learners/rl_agent.py` in numpy: workers need no torch.

    In blocks of a fixed size: a product of matrices of another size may differ in the last bit, and
    how tasks are cut into batches must not change a decision.
    """
    rows = len(state)
    state = np.concatenate([state, np.zeros((-rows % BLOCK, state.shape[1]), np.float32)])
    blocks = state.reshape(-1, BLOCK, state.shape[1])
    hidden = (blocks - weights["centre"]) / weights["spread"]
    for layer in ("body.0", "body.2"):
        hidden = np.maximum(hidden @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"], 0.0)
    advantage = hidden @ weights["advantage.weight"].T + weights["advantage.bias"]
    value = hidden @ weights["value.weight"].T + weights["value.bias"]
    q: Floats = value + advantage - advantage.mean(axis=2, keepdims=True)
    return q.reshape(len(state), -1)[:rows]


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
