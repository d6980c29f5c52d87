"""The learner behind `rl_agent`: a dueling double DQN, from top to bottom.

    state     log size, compute intensity, log memory, each normalised
    actions   0: the CPU, 1..n: the whole task on GPU 0..n-1
    reward    -((1 - w) time + w energy / (power of a CPU and a GPU together)) / scale
    target    r + discount * Q_target(s', argmax_a Q(s', a))           (van Hasselt et al. 2016)
    network   two hidden layers, then V(s) + A(s, a) - mean_a A(s, a)  (Wang et al. 2016)
    loss      Huber, gradients clipped by norm, Adam; replay           (Mnih et al. 2015)

Energy is counted in seconds at full power, so that time and energy have the same unit and
`energy_weight` means what it says. The scale makes the average reward -1. Half of each batch is
drawn from the newest results. The hyperparameters are fields of `RunSpec.learning.agent`.

With `observes: task` the discount is 0: where a task runs does not change which one comes next, so
the target is the reward. With `observes: cluster` the state has the queue of each action as well,
time is turnaround, and the discount is above 0: a placement changes the queues that the next task
meets, which the target network and double Q then estimate.

The first model is trained on generated tasks, every action of them with the reward of the physics.
If the tasks of the run are of another magnitude, its own newest tasks are used instead: they set
the normalisation and the scale of a new network, which is pre-trained on them.
"""

from __future__ import annotations

from threading import Lock

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.nn import functional

from services.trainer.adam import Adam
from services.trainer.agent_transitions import Transitions, TransitionsOfRun
from services.trainer.dueling_network import DuelingNetwork
from services.trainer.learner import Learner, Results, Update
from services.trainer.pretraining import pretraining_tasks
from services.trainer.replay_buffer import ReplayBuffer
from shared.domain.learning.features import agent_state
from shared.domain.schedulers import AGENT
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks

# torch initialises networks with a generator that all threads, and so all runs, share.
_SEEDING = Lock()

# An error of less than this above the average one is no surprise: a ratio of about 1.2.
SMALL_ERROR = 0.2
ERROR_SMOOTHING = 0.005  # per result
# Training steps of one round: after a surprise, a model soon is better than a perfect one late.
MOST_STEPS = 1000
# Tasks whose average reward is that many times the scale, or less than its inverse, are of another
# magnitude than those that the agent was made for.
FAR = 10.0
FEWEST_TASKS = 100  # fewer say too little about that
# What all tasks of a sample have in common, such as no memory, may differ a little later.
LEAST_SPREAD = 0.01
# Results before the new ones that tell which queues those met.
HISTORY = 1000
# Tensors of the model that only training needs begin with this.
TRAINING = "training."


class Dqn:
    """The agent of one run, in training."""

    def __init__(self, spec: RunSpec, sample: Tasks) -> None:
        """`sample` are tasks like those to come; they set the normalisation and the scale."""
        torch.set_num_threads(1)
        self.spec = spec
        self.transitions = TransitionsOfRun(spec)
        rule = spec.learning.agent
        with _SEEDING:
            torch.manual_seed(spec.seed % 2**31)
            self.policy = self._new_network()
        self.discount = rule.weight_of_next
        # Only with a discount does the next state count, and with it the target network.
        self.target = self._new_network() if self.discount else None
        self.optimiser = Adam(self.policy.parameters(), rule.learning_rate)
        self.random = np.random.default_rng(spec.seed)
        self.steps = 0
        self.loss = 0.0
        self.average_error: float | None = None
        self.exploration = 0.0  # the least epsilon that the model asks workers for
        self.recent = rule.newest  # half of a batch is from that many results
        state = agent_state(sample)
        self.policy.centre.copy_(torch.from_numpy(state.mean(axis=0)))
        spread = np.maximum(state.std(axis=0) + 1e-6, LEAST_SPREAD)
        self.policy.spread.copy_(torch.from_numpy(spread))
        self._copy_to_target()
        self.scale = self.transitions.average_reward(sample)
        self.replay = ReplayBuffer(rule.replay, self.policy.inputs)

    def _new_network(self) -> DuelingNetwork:
        actions, hidden = len(self.transitions.actions), self.spec.learning.agent.hidden
        if not self.transitions.sees_queues:
            return DuelingNetwork(actions, hidden)
        cost_of_waiting = 1 - self.spec.learning.energy_weight
        return DuelingNetwork(actions, hidden, sees_queues=True, cost_of_waiting=cost_of_waiting)

    def is_of_another_magnitude(self, tasks: Tasks) -> bool:
        """Whether tasks are so far from the sample that the network cannot tell them apart."""
        ratio = self.transitions.average_reward(tasks) / self.scale
        return bool(np.isfinite(ratio)) and not 1 / FAR < ratio < FAR

    def add_tasks(self, tasks: Tasks) -> None:
        """Add every action of tasks with the reward of the physics."""
        self.replay.add(self.transitions.of_tasks(tasks, self.scale))

    def pretrain(self, tasks: Tasks) -> None:
        self.add_tasks(tasks)
        self.train(self.spec.learning.agent.pretrain_steps)
        self.average_error = self._error(self.replay.transitions())

    def add_results(self, results: Results, new: int | None = None) -> float:
        """Add results; earlier models have learned from all except the last `new` (None: all are
        new). Returns the training steps that are due for them."""
        transitions = self.transitions.of_results(results, self.scale)
        self.replay.add(transitions)
        transitions = _last(transitions, results, new)
        if not len(transitions):
            return 0.0
        rule = self.spec.learning.agent
        surprised = self._update_error(self._error(transitions), len(transitions))
        self.recent = min(self.recent + len(transitions), rule.newest)
        return len(transitions) * (
            rule.steps_per_result + (rule.surprise_steps if surprised else 0.0)
        )

    def is_surprised(self, results: Results, new: int) -> bool:
        """Whether the rewards are far from the predicted ones: the workload has changed, so it is
        time to explore more and to train more, on the results since then."""
        results = results.last(new + HISTORY)
        transitions = _last(self.transitions.of_results(results, self.scale), results, new)
        return bool(len(transitions)) and self._is_large(self._error(transitions))

    def _is_large(self, error: float) -> bool:
        if self.average_error is None:
            return False
        return error > self.spec.learning.agent.surprise * self.average_error + SMALL_ERROR

    def _update_error(self, error: float, results: int) -> bool:
        """Returns whether it is a surprise."""
        rule, surprised = self.spec.learning.agent, self._is_large(error)
        if self.average_error is None:
            self.average_error = error
        # Limited, so that one large error does not become the average at once.
        weight = 1 - (1 - ERROR_SMOOTHING) ** results
        self.average_error += weight * (min(error, 3 * self.average_error) - self.average_error)
        if surprised and self.calm:
            self.recent = 0
        if surprised:
            self.exploration = rule.surprise_epsilon
        else:
            self.exploration *= 0.5 ** (results / rule.calm_down)
        return surprised

    def _error(self, transitions: Transitions) -> float:
        """The mean error of the logarithms of the predicted values: without logarithms a few huge
        tasks would outweigh all others."""
        with torch.no_grad():
            q = self.policy(torch.from_numpy(transitions.state)).numpy()
        predicted = q[np.arange(len(transitions)), transitions.action]
        target_value = transitions.reward.astype(np.float64)
        if self.target is not None:
            target_value += (
                self.discount * self._value_of(torch.from_numpy(transitions.next_state)).numpy()
            )
        error = np.log1p(np.maximum(-predicted, 0.0)) - np.log1p(np.maximum(-target_value, 0.0))
        return float(np.abs(error).mean())

    def _value_of(self, next_state: Tensor) -> Tensor:
        """Double Q: the policy network says which action is best, the target network its value."""
        assert self.target is not None
        with torch.no_grad():
            best = self.policy(next_state).argmax(dim=1, keepdim=True)
            value: Tensor = self.target(next_state).gather(1, best).squeeze(1)
        return value

    @property
    def calm(self) -> bool:
        """Whether the last surprise is long ago."""
        return self.exploration < self.spec.learning.agent.surprise_epsilon / 4

    def train(self, steps: int) -> None:
        rule = self.spec.learning.agent
        if len(self.replay) < rule.batch:
            return
        self.optimiser.rate = rule.learning_rate * (1.0 if self.calm else rule.surprise_rate)
        for _ in range(steps):
            state, action, rewards, next_state = self.replay.sample(
                rule.batch, self.recent, self.random
            )
            target = rewards
            if self.target is not None:
                target = rewards + self.discount * self._value_of(next_state)
            predicted = self.policy(state).gather(1, action.unsqueeze(1)).squeeze(1)
            loss = functional.smooth_l1_loss(predicted, target)
            self.optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.policy.parameters(), rule.clip)
            self.optimiser.step()
            self.steps += 1
            self.loss += 0.01 * (float(loss.detach()) - self.loss)
            if self.steps % rule.target_every == 0:
                self._copy_to_target()

    def _copy_to_target(self) -> None:
        if self.target is not None:
            self.target.load_state_dict(self.policy.state_dict())

    def weights(self) -> bytes:
        """The network, and all that training needs to continue as if it had never stopped."""
        tensors = dict(self.policy.state_dict())
        tensors["scale"] = torch.tensor([self.scale], dtype=torch.float64)
        tensors["exploration"] = torch.tensor([self.exploration], dtype=torch.float64)
        average = np.nan if self.average_error is None else self.average_error
        progress = [self.steps, self.loss, average, self.recent]
        tensors[TRAINING + "progress"] = torch.tensor(progress, dtype=torch.float64)
        for name, parameter in self.policy.named_parameters():
            for moment, tensor in self.optimiser.state.get(parameter, {}).items():
                tensors[f"{TRAINING}{moment}.{name}"] = tensor
        if self.target is not None:
            for name, tensor in self.target.state_dict().items():
                tensors[f"{TRAINING}target.{name}"] = tensor
        return bytes(save({name: tensor.contiguous() for name, tensor in tensors.items()}))

    def restore(self, body: bytes) -> None:
        """Continue from published weights; those of older versions have no state of training."""
        tensors = load(body)
        training = {
            name.removeprefix(TRAINING): tensors.pop(name)
            for name in list(tensors)
            if name.startswith(TRAINING)
        }
        self.scale = float(tensors.pop("scale")[0])
        self.exploration = float(tensors.pop("exploration")[0])
        self.policy.load_state_dict(tensors)
        self._copy_to_target()
        if not training:
            return
        steps, self.loss, average, recent = training["progress"].tolist()
        self.steps, self.recent = int(steps), int(recent)
        self.average_error = None if np.isnan(average) else average
        if self.target is not None:
            names = self.target.state_dict()
            self.target.load_state_dict({name: training[f"target.{name}"] for name in names})
        for name, parameter in self.policy.named_parameters():
            moments = ("step", "exp_avg", "exp_avg_sq")
            if f"step.{name}" in training:
                self.optimiser.state[parameter] = {
                    moment: training[f"{moment}.{name}"] for moment in moments
                }


class AgentLearner(Learner):
    name = AGENT

    def __init__(self, spec: RunSpec) -> None:
        super().__init__(spec)
        self._generated = pretraining_tasks(spec)
        self._opened: tuple[bytes, Dqn] | None = None

    @property
    def window(self) -> int:
        return self.spec.learning.agent.replay

    @property
    def every(self) -> int:
        rule = self.spec.learning.agent
        return max(round(rule.ship_every / max(rule.steps_per_result, 1e-9)), 1)

    def pretrain(self, tasks: Tasks) -> Update:
        dqn = Dqn(self.spec, tasks)
        dqn.pretrain(tasks)
        return self._update(dqn)

    def is_due(self, model: bytes | None, results: Results, new: int) -> bool:
        if new >= self.every or (model is None and new > 0):
            return True
        if model is None or new == 0:
            return False
        if self._opened is None or self._opened[0] is not model:
            self._opened = (model, self._restored(model))
        dqn = self._opened[1]
        return not dqn.calm or dqn.is_surprised(results, new)

    def learn(self, model: bytes | None, results: Results, new: int, version: int) -> Update:
        """Without a model yet, the first one is untrained, and explores."""
        dqn = self._restored(model)
        steps, notes = dqn.steps, []
        newest = results.last(max(new, FEWEST_TASKS)).tasks
        if len(newest) >= FEWEST_TASKS and dqn.is_of_another_magnitude(newest):
            dqn = Dqn(self.spec, self._newest_tasks(results))
            dqn.steps = steps
            notes.append("made anew for tasks of another magnitude")
        dqn.random = np.random.default_rng([self.spec.seed, version])
        if self.spec.learning.pretrain_tasks:
            far = dqn.is_of_another_magnitude(self._generated)
            tasks = self._newest_tasks(results) if far else self._generated
            if notes:
                dqn.pretrain(tasks)
            else:
                dqn.add_tasks(tasks)
        due = dqn.add_results(results, new)
        dqn.train(min(round(due), MOST_STEPS))
        if model is None:
            return self._update(dqn, "the first model, untrained")
        notes += [] if dqn.calm else ["surprised"]
        notes.append(f"after {dqn.steps - steps} more learning steps")
        return self._update(dqn, ": ".join(notes))

    def _newest_tasks(self, results: Results) -> Tasks:
        """As many of the newest tasks as are generated before the run."""
        return results.last(len(self._generated)).tasks

    def _restored(self, model: bytes | None) -> Dqn:
        dqn = Dqn(self.spec, self._generated)
        if model is not None:
            dqn.restore(model)
        return dqn

    def _update(self, dqn: Dqn, reason: str = "") -> Update:
        oldest, _ = dqn.replay.task_range()
        metrics = {"loss": dqn.loss, "steps": float(dqn.steps)}
        return Update(dqn.weights(), reason, metrics, len(dqn.replay), oldest)


def _last(transitions: Transitions, results: Results, new: int | None) -> Transitions:
    """The transitions of the last `new` results; None: all."""
    if new is None:
        return transitions
    first = results.tasks.task_id[-new:][:1]
    return transitions.rows(transitions.task_id >= first)
