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

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.nn import functional

from shared.domain.agent_actions import CPU, AgentActions
from shared.domain.features import AGENT_FEATURES, Matrix, agent_state
from shared.domain.physics import price
from shared.domain.platform import Platform
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Integers, Tasks
from shared.domain.times import seconds

STATE_SIZE = len(AGENT_FEATURES)

# An error of less than this above the average one is no surprise: a ratio of about 1.2.
SMALL_ERROR = 0.2
ERROR_SMOOTHING = 0.005  # per result


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
        """The oldest and the newest task id; -1 for generated tasks."""
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


@dataclass(frozen=True, slots=True)
class Results:
    """The results of the agent's decisions, one row per task."""

    tasks: Tasks
    share: Floats
    device: Integers
    time: Floats
    energy: Floats


class Dqn:
    """The agent of one run, in training."""

    def __init__(self, spec: RunSpec, sample: Tasks) -> None:
        """`sample` are tasks like those to come; they set the normalisation and the scale."""
        torch.set_num_threads(1)
        torch.manual_seed(spec.seed % 2**31)
        self.spec = spec
        self.actions = AgentActions(spec.platform)
        rule = spec.learning.agent
        self.policy = DuelingNetwork(len(self.actions), rule.hidden)
        self.target = DuelingNetwork(len(self.actions), rule.hidden)
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
        self.target.load_state_dict(self.policy.state_dict())
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

    def pretrain(self, tasks: Tasks) -> None:
        """Train offline, on every action of generated tasks with the reward of the physics."""
        state = agent_state(tasks)
        task_id = np.full(len(tasks), -1)
        for action, rewards in enumerate(self._reward_of_each_action(tasks)):
            self.replay.add(task_id, state, np.full(len(tasks), action), rewards / self.scale)
        self.train(self.spec.learning.agent.pretrain_steps)
        rows = slice(len(self.replay))
        rewards = self.replay.reward[rows].astype(np.float64)
        self.average_error = self._error(self.replay.state[rows], self.replay.action[rows], rewards)

    def add_results(self, results: Results) -> float:
        """Add results of the agent's decisions; returns the training steps that are due for them.

        Decisions of the fallback rule (a share between 0 and 1) are not actions of the agent.
        """
        tasks, share = results.tasks, results.share
        is_action = (share == 0.0) | (share == 1.0)
        if not is_action.any():
            return 0.0
        state = agent_state(tasks)[is_action]
        action = np.where(share > 0, self.actions.action_of(results.device), CPU)[is_action]
        rewards = reward(results.time, results.energy, self.spec)
        rewards = (rewards / self.scale)[is_action]
        self.replay.add(tasks.task_id[is_action], state, action, rewards)
        rule = self.spec.learning.agent
        surprised = self._is_surprised(state, action, rewards)
        self.recent = min(self.recent + len(rewards), rule.newest)
        return len(rewards) * (rule.steps_per_result + (rule.surprise_steps if surprised else 0.0))

    def _is_surprised(self, state: Matrix, action: NDArray[np.int64], rewards: Floats) -> bool:
        """Whether the rewards are far from the predicted ones: the workload has changed, so it is
        time to explore more and to train more, on the results since then."""
        error = self._error(state, action, rewards)
        rule = self.spec.learning.agent
        if self.average_error is None:
            self.average_error = error
        surprised = error > rule.surprise * self.average_error + SMALL_ERROR
        # Limited, so that one large error does not become the average at once.
        weight = 1 - (1 - ERROR_SMOOTHING) ** len(rewards)
        self.average_error += weight * (min(error, 3 * self.average_error) - self.average_error)
        if surprised and self.calm:
            self.recent = 0
        if surprised:
            self.exploration = rule.surprise_epsilon
        else:
            self.exploration *= 0.5 ** (len(rewards) / rule.calm_down)
        return surprised

    def _error(self, state: Matrix, action: NDArray[np.int64], rewards: Floats) -> float:
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
            if rule.discount:
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
                self.target.load_state_dict(self.policy.state_dict())

    def weights(self) -> bytes:
        tensors = dict(self.policy.state_dict())
        tensors["scale"] = torch.tensor([self.scale], dtype=torch.float64)
        tensors["exploration"] = torch.tensor([self.exploration], dtype=torch.float64)
        return bytes(save({name: tensor.contiguous() for name, tensor in tensors.items()}))

    def restore(self, body: bytes) -> None:
        """Continue from published weights."""
        tensors = load(body)
        self.scale = float(tensors.pop("scale")[0])
        self.exploration = float(tensors.pop("exploration")[0])
        self.policy.load_state_dict(tensors)
        self.target.load_state_dict(tensors)


def reward(time: Floats, energy: Floats, spec: RunSpec) -> Floats:
    weight, power = spec.learning.energy_weight, max(reference_watts(spec.platform), 1e-9)
    return -((1 - weight) * time + weight * energy / power)


def reference_watts(platform: Platform) -> float:
    """Brings energy to the scale of time: the most that an accelerator and a CPU take together."""
    accelerator = np.array([each.accelerator for each in platform.types])
    watts = platform.watts
    return float(watts[accelerator].max(initial=0.0) + watts[~accelerator].max(initial=0.0))
