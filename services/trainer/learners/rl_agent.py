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
"""

from __future__ import annotations

from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.nn import functional

from services.trainer.learner import Learner, Results, Update
from services.trainer.pretraining import pretraining_tasks
from shared.domain.agent_actions import CPU, AgentActions
from shared.domain.features import AGENT_FEATURES, Matrix, agent_state
from shared.domain.objective import reference
from shared.domain.physics import price
from shared.domain.schedulers import AGENT
from shared.domain.spec import RunSpec
from shared.domain.tasks import Bools, Floats, Integers, Tasks
from shared.domain.times import seconds

STATE_SIZE = len(AGENT_FEATURES)

# torch initialises networks with a generator that all threads, and so all runs, share.
_SEEDING = Lock()

# An error of less than this above the average one is no surprise: a ratio of about 1.2.
SMALL_ERROR = 0.2
ERROR_SMOOTHING = 0.005  # per result
# Training steps of one round: after a surprise, a model soon is better than a perfect one late.
MOST_STEPS = 1000
# Tensors of the model that only training needs begin with this.
TRAINING = "training."


class DuelingNetwork(nn.Module):
    """Q(s, a) = V(s) + A(s, a) - mean A(s, .), after a fixed normalisation of the state."""

    centre: Tensor
    spread: Tensor

    def __init__(self, actions: int, hidden: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(STATE_SIZE))
        self.register_buffer("spread", torch.ones(STATE_SIZE))
        self.body = nn.Sequential(
            nn.Linear(STATE_SIZE, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.value = nn.Linear(hidden, 1)
        self.advantage = nn.Linear(hidden, actions)

    def forward(self, state: Tensor) -> Tensor:
        hidden = self.body((state - self.centre) / self.spread)
        advantage = self.advantage(hidden)
        q: Tensor = self.value(hidden) + advantage - advantage.mean(dim=1, keepdim=True)
        return q


class ReplayBuffer:
    """The newest transitions, in arrays of fixed size."""

    def __init__(self, size: int) -> None:
        self.task_id = np.zeros(size, np.int64)
        self.state = np.zeros((size, STATE_SIZE), np.float32)
        self.action = np.zeros(size, np.int64)
        self.reward = np.zeros(size, np.float32)
        self.next_state = np.zeros((size, STATE_SIZE), np.float32)
        self._size, self._written = size, 0

    def __len__(self) -> int:
        return min(self._written, self._size)

    def task_range(self) -> tuple[int, int]:
        """The oldest and the newest task id; -1: generated, or there are none."""
        oldest, newest = self._written - len(self), self._written - 1
        return int(self.task_id[oldest % self._size]), int(self.task_id[newest % self._size])

    def add(
        self, task_id: Integers, state: Matrix, action: NDArray[np.int64], reward: Floats
    ) -> None:
        """Add consecutive tasks; the next state of a task is the state of the one after it."""
        next_state = np.concatenate([state[1:], state[-1:]])
        start = max(len(state) - self._size, 0)
        index = (self._written + np.arange(len(state) - start)) % self._size
        self.task_id[index] = task_id[start:]
        self.state[index] = state[start:]
        self.action[index] = action[start:]
        self.reward[index] = reward[start:]
        self.next_state[index] = next_state[start:]
        self._written += len(index)

    def sample(self, count: int, newest: int, random: np.random.Generator) -> tuple[Tensor, ...]:
        """Half from the whole buffer, half from the newest, so that changes are learned soon."""
        age = np.concatenate(
            [
                random.integers(0, len(self), count - count // 2),
                random.integers(0, min(newest, len(self)), count // 2),
            ]
        )
        index = (self._written - 1 - age) % self._size
        return tuple(
            torch.from_numpy(column[index])
            for column in (self.state, self.action, self.reward, self.next_state)
        )


class Dqn:
    """The agent of one run, in training."""

    def __init__(self, spec: RunSpec, sample: Tasks) -> None:
        """`sample` are tasks like those to come; they set the normalisation and the scale."""
        torch.set_num_threads(1)
        self.spec = spec
        self.actions = AgentActions(spec.platform)
        rule = spec.learning.agent
        with _SEEDING:
            torch.manual_seed(spec.seed % 2**31)
            self.policy = DuelingNetwork(len(self.actions), rule.hidden)
        # Only with a discount does the next state count, and with it the target network.
        self.target = DuelingNetwork(len(self.actions), rule.hidden) if rule.discount else None
        self.optimiser = torch.optim.Adam(
            self.policy.parameters(), lr=rule.learning_rate, fused=True
        )
        self.replay = ReplayBuffer(rule.replay)
        self.random = np.random.default_rng(spec.seed)
        self.steps = 0
        self.loss = 0.0
        self.average_error: float | None = None
        self.exploration = 0.0  # the least epsilon that the model asks workers for
        self.recent = rule.newest  # half of a batch is from that many results
        state = agent_state(sample)
        self.policy.centre.copy_(torch.from_numpy(state.mean(axis=0)))
        self.policy.spread.copy_(torch.from_numpy(state.std(axis=0) + 1e-6))
        self._copy_to_target()
        rewards = np.concatenate(self._reward_of_each_action(sample))
        self.scale = float(np.abs(rewards).mean()) or 1.0

    def _reward_of_each_action(self, tasks: Tasks) -> list[Floats]:
        """The rewards that expected times give, not scaled, of each action."""
        times, of_type = seconds(tasks, self.spec), dict[int, Floats]()
        rewards = []
        for action in range(len(self.actions)):
            kind = -1 if action == CPU else self.actions.kind(action)
            if kind not in of_type:
                share = np.full(len(tasks), 0.0 if action == CPU else 1.0)
                device = self.actions.device(np.full(len(tasks), action), tasks.task_id)
                priced = price(tasks, share, self.spec, device, times=times)
                of_type[kind] = reward(priced.time, priced.energy, self.spec)
            rewards.append(of_type[kind])
        return rewards

    def add_generated(self, tasks: Tasks) -> None:
        """Add every action of generated tasks with the reward of the physics."""
        state, task_id = agent_state(tasks), np.full(len(tasks), -1)
        for action, rewards in enumerate(self._reward_of_each_action(tasks)):
            self.replay.add(task_id, state, np.full(len(tasks), action), rewards / self.scale)

    def pretrain(self, tasks: Tasks) -> None:
        self.add_generated(tasks)
        self.train(self.spec.learning.agent.pretrain_steps)
        rows = slice(len(self.replay))
        rewards = self.replay.reward[rows].astype(np.float64)
        self.average_error = self._error(self.replay.state[rows], self.replay.action[rows], rewards)

    def add_old_results(self, results: Results) -> None:
        """Add results that earlier models have learned from."""
        chosen, state, action, rewards = self._transitions(results)
        self.replay.add(results.tasks.task_id[chosen], state, action, rewards)

    def add_results(self, results: Results) -> float:
        """Add new results; returns the training steps that are due for them."""
        chosen, state, action, rewards = self._transitions(results)
        if not len(rewards):
            return 0.0
        self.replay.add(results.tasks.task_id[chosen], state, action, rewards)
        rule = self.spec.learning.agent
        surprised = self._take_note_of_error(self._error(state, action, rewards), len(rewards))
        self.recent = min(self.recent + len(rewards), rule.newest)
        return len(rewards) * (rule.steps_per_result + (rule.surprise_steps if surprised else 0.0))

    def is_surprised(self, results: Results) -> bool:
        """Whether the rewards are far from the predicted ones: the workload has changed, so it is
        time to explore more and to train more, on the results since then."""
        _, state, action, rewards = self._transitions(results)
        return bool(len(rewards)) and self._is_large(self._error(state, action, rewards))

    def _transitions(self, results: Results) -> tuple[Bools, Matrix, Integers, Floats]:
        """Decisions of the fallback rule (a share between 0 and 1) are not actions of the agent."""
        share = results.share
        is_action = (share == 0.0) | (share == 1.0)
        action = np.where(share > 0, self.actions.action_of(results.device), CPU)[is_action]
        rewards = reward(results.time, results.energy, self.spec) / self.scale
        return is_action, agent_state(results.tasks)[is_action], action, rewards[is_action]

    def _is_large(self, error: float) -> bool:
        if self.average_error is None:
            return False
        return error > self.spec.learning.agent.surprise * self.average_error + SMALL_ERROR

    def _take_note_of_error(self, error: float, results: int) -> bool:
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

    def _error(self, state: Matrix, action: Integers, rewards: Floats) -> float:
        """The mean error of the predicted rewards, of their logarithms: otherwise a few huge tasks
        would outweigh all others."""
        with torch.no_grad():
            q = self.policy(torch.from_numpy(state)).numpy()
        predicted = q[np.arange(len(rewards)), action]
        error = np.log1p(np.maximum(-predicted, 0.0)) - np.log1p(np.maximum(-rewards, 0.0))
        return float(np.abs(error).mean())

    @property
    def calm(self) -> bool:
        """Whether the last surprise is long ago."""
        return self.exploration < self.spec.learning.agent.surprise_epsilon / 4

    def train(self, steps: int) -> None:
        rule = self.spec.learning.agent
        if len(self.replay) < rule.batch:
            return
        for group in self.optimiser.param_groups:
            group["lr"] = rule.learning_rate * (1.0 if self.calm else rule.surprise_rate)
        for _ in range(steps):
            state, action, rewards, next_state = self.replay.sample(
                rule.batch, self.recent, self.random
            )
            target = rewards
            if self.target is not None:
                with torch.no_grad():
                    best = self.policy(next_state).argmax(dim=1, keepdim=True)
                    next_q = self.target(next_state).gather(1, best).squeeze(1)
                    target = rewards + rule.discount * next_q
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
            for moment, tensor in self.optimiser.state[parameter].items():
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
        return not dqn.calm or dqn.is_surprised(results.last(new))

    def learn(self, model: bytes | None, results: Results, new: int, version: int) -> Update:
        """Without a model yet, the first one is untrained, and explores."""
        dqn = self._restored(model)
        dqn.random = np.random.default_rng([self.spec.seed, version])
        if self.spec.learning.pretrain_tasks:
            dqn.add_generated(self._generated)
        dqn.add_old_results(results.all_but_last(new))
        due = dqn.add_results(results.last(new))
        before = dqn.steps
        dqn.train(min(round(due), MOST_STEPS))
        prefix = "" if dqn.calm else "surprised: "
        steps = f"{prefix}after {dqn.steps - before} more learning steps"
        return self._update(dqn, "the first model, untrained" if model is None else steps)

    def _restored(self, model: bytes | None) -> Dqn:
        dqn = Dqn(self.spec, self._generated)
        if model is not None:
            dqn.restore(model)
        return dqn

    def _update(self, dqn: Dqn, reason: str = "") -> Update:
        oldest, _ = dqn.replay.task_range()
        metrics = {"loss": dqn.loss, "steps": float(dqn.steps)}
        return Update(dqn.weights(), reason, metrics, len(dqn.replay), oldest)


def reward(time: Floats, energy: Floats, spec: RunSpec) -> Floats:
    """Energy is brought to the scale of time."""
    weight, platform = spec.learning.energy_weight, spec.platform
    power = max(reference(platform.watts, platform), 1e-9)
    return -((1 - weight) * time + weight * energy / power)
