from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.scheduler.learned import LearnedPolicy
from shared.draws import uniform
from shared.features import AGENT_FEATURES, Matrix, agent_state
from shared.models import AGENT
from shared.spec import RunSpec
from shared.tasks import Decisions, Floats, Integers, Tasks

Weights = dict[str, NDArray[np.float32]]

EXPLORE, CHOOSE = 1, 2  # what a draw decides; two draws of a task must not be the same


class RlAgent(LearnedPolicy):
    """A dueling DQN that places whole tasks: on the CPU, or on one of the GPUs.

    Epsilon-greedy: whether it explores, and what it tries, are drawn from (seed, task id), so it
    does not matter which worker decides. A learner that was surprised by its results asks for more
    exploration for a while, of the CPU as often as of the GPUs; that comes with the model. Where
    its values of several GPUs are the same within `indifference`, these take turns by task id, so
    that tasks do not pile up on one of them. Loses where splitting a task would be best, because
    it cannot split.
    """

    name = "rl_agent"
    learner = AGENT

    def open(self, body: bytes) -> Any:
        from safetensors.numpy import load

        weights: Weights = load(body)
        values(weights, np.ones((1, len(AGENT_FEATURES)), np.float32))
        float(weights["exploration"].item())
        return weights

    def decide_with(self, model: Any, tasks: Tasks, spec: RunSpec) -> Decisions:
        worth = values(model, agent_state(tasks))
        if worth.shape[1] != spec.cluster.gpus + 1:
            raise ValueError(
                f"a model of {worth.shape[1] - 1} GPUs in a cluster of {spec.cluster.gpus}"
            )
        best = take_turns(worth, tasks.task_id, spec.learning.agent.indifference)
        counter = tasks.task_id.astype(np.uint64)
        usual, asked = epsilon(tasks.task_id, spec), model["exploration"]
        exploring = np.maximum(usual, asked)
        # What a surprised learner has to find out is whether the other kind of device is better.
        on_cpu = np.where(asked > usual, 0.5, 1 / worth.shape[1])
        explores = uniform(spec.seed, counter, EXPLORE) < exploring
        tried = any_action(uniform(spec.seed, counter, CHOOSE), on_cpu, spec.cluster.gpus)
        action = np.where(explores, tried, best)
        return Decisions(
            gpu_fraction=np.where(action > 0, 1.0, 0.0),
            gpu=np.where(action > 0, action - 1, tasks.task_id % spec.cluster.gpus),
            explored=explores,
            probability=probability(action, best, exploring, on_cpu, spec.cluster.gpus),
        )


def values(weights: Weights, state: Matrix) -> Floats:
    """The network of `services/trainer/dqn.py`, in numpy: workers do not need torch."""
    seen = (state - weights["centre"]) / weights["spread"]
    for layer in ("body.0", "body.2"):
        seen = np.maximum(seen @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"], 0.0)
    advantage = seen @ weights["advantage.weight"].T + weights["advantage.bias"]
    value = seen @ weights["value.weight"].T + weights["value.bias"]
    worth: Floats = value + advantage - advantage.mean(axis=1, keepdims=True)
    return worth


def take_turns(worth: Floats, task_id: Integers, indifference: float) -> Integers:
    """The best action; among GPUs that are as good as the best one, the task id's turn.

    The larger a task, the larger the network's error: as good means within `indifference` of a
    usual reward, which is 1, or of this task's.
    """
    gpus = worth[:, 1:]
    best = gpus.max(axis=1, keepdims=True)
    equal = gpus >= best - indifference * np.maximum(np.abs(best), 1.0)
    turn = task_id % equal.sum(axis=1)
    # The (turn + 1)-th of the equal GPUs.
    chosen = (np.cumsum(equal, axis=1) == (turn + 1)[:, None]).argmax(axis=1)
    return np.where(gpus.max(axis=1) > worth[:, 0], chosen + 1, 0)


def epsilon(task_id: Integers, spec: RunSpec) -> Floats:
    rule = spec.learning.agent
    start = rule.epsilon_start if spec.learning.pretrain_tasks else rule.epsilon_cold
    gone = np.exp(-task_id / rule.epsilon_tasks)
    return np.asarray(rule.epsilon_end + (start - rule.epsilon_end) * gone)


def any_action(draw: Floats, on_cpu: Floats, gpus: int) -> Integers:
    """The CPU with the probability `on_cpu`, else one of the GPUs, each as likely."""
    gpu = np.floor((draw - on_cpu) / (1 - on_cpu) * gpus)
    # Rounding may reach the end of the last GPU's stretch.
    return np.where(draw < on_cpu, 0, 1 + np.minimum(gpu, gpus - 1)).astype(np.int64)


def probability(
    action: Integers, best: Integers, exploring: Floats, on_cpu: Floats, gpus: int
) -> Floats:
    """Of the action that was taken, exploration included."""
    tried = np.where(action == 0, on_cpu, (1 - on_cpu) / gpus)
    return np.asarray(exploring * tried + np.where(action == best, 1 - exploring, 0.0))
