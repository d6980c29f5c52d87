"""The learner behind `rl_agent`: a dueling double DQN, from top to bottom.

    state     log size, compute intensity, log memory, each normalised
    actions   0: the CPU, 1..n: the whole task on GPU 0..n-1
    reward    -((1 - w) time + w energy / (power of a CPU and a GPU together)) / scale
    target    r + discount * Q_target(s', argmax_a Q(s', a))           (van Hasselt et al. 2016)
    network   two hidden layers, then V(s) + A(s, a) - mean_a A(s, a)  (Wang et al. 2016)
    loss      Huber, gradients clipped by norm, Adam; uniform replay   (Mnih et al. 2015)

Energy enters in seconds at full power, so that time and energy are of one size and `energy_weight`
means what it says. The scale makes an average reward -1. Every number is a field of
`RunSpec.learning.agent`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.nn import functional

from services.trainer.charges import charged
from shared.features import Matrix, agent_state
from shared.physics import Bools, price
from shared.spec import RunSpec
from shared.tasks import Floats, Integers, Tasks

STATES = 3

# An error this far above the usual one is none to be surprised about: a ratio of 1.2 or so.
SMALL_ERROR = 0.2
ERROR_SMOOTHING = 0.005  # by each result


class DuelingNetwork(nn.Module):
    """Q(s, a) = V(s) + A(s, a) - mean A(s, .), behind a fixed normalisation of the state."""

    centre: Tensor
    spread: Tensor

    def __init__(self, actions: int, hidden: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(STATES))
        self.register_buffer("spread", torch.ones(STATES))
        self.body = nn.Sequential(
            nn.Linear(STATES, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.value = nn.Linear(hidden, 1)
        self.advantage = nn.Linear(hidden, actions)

    def forward(self, state: Tensor) -> Tensor:
        seen = self.body((state - self.centre) / self.spread)
        advantage = self.advantage(seen)
        worth: Tensor = self.value(seen) + advantage - advantage.mean(dim=1, keepdim=True)
        return worth


class Replay:
    """The newest transitions, in arrays of fixed size."""

    def __init__(self, size: int) -> None:
        self.task = np.zeros(size, np.int64)
        self.state = np.zeros((size, STATES), np.float32)
        self.action = np.zeros(size, np.int64)
        self.reward = np.zeros(size, np.float32)
        self.following = np.zeros((size, STATES), np.float32)
        self._size, self._written = size, 0

    def __len__(self) -> int:
        return min(self._written, self._size)

    def tasks(self) -> tuple[int, int]:
        """The oldest and the newest task in it; -1 for generated ones."""
        ends = (self._written - len(self), self._written - 1)
        first, last = (int(self.task[end % self._size]) for end in ends)
        return first, last

    def add(self, task: Integers, state: Matrix, action: NDArray[np.int64], reward: Floats) -> None:
        """A stretch of the stream: what follows a task is the next one."""
        following = np.concatenate([state[1:], state[-1:]])
        start = max(len(state) - self._size, 0)
        places = (self._written + np.arange(len(state) - start)) % self._size
        self.task[places] = task[start:]
        self.state[places] = state[start:]
        self.action[places] = action[start:]
        self.reward[places] = reward[start:]
        self.following[places] = following[start:]
        self._written += len(places)

    def sample(self, count: int, newest: int, random: np.random.Generator) -> tuple[Tensor, ...]:
        """Half from all of it, half from the newest: what has just changed is noticed soon."""
        ages = np.concatenate(
            [
                random.integers(0, len(self), count - count // 2),
                random.integers(0, min(newest, len(self)), count // 2),
            ]
        )
        rows = (self._written - 1 - ages) % self._size
        return tuple(
            torch.from_numpy(column[rows])
            for column in (self.state, self.action, self.reward, self.following)
        )


@dataclass(frozen=True, slots=True)
class Results:
    """What became of the agent's decisions, one row a task."""

    tasks: Tasks
    share: Floats
    gpu: Integers
    time: Floats
    energy: Floats
    failed: Bools


class Dqn:
    """One run's agent as it learns."""

    def __init__(self, spec: RunSpec, sample: Tasks) -> None:
        """`sample` are tasks of the kind to come; they set the normalisation."""
        torch.set_num_threads(1)
        torch.manual_seed(spec.seed % 2**31)
        self.spec = spec
        self.actions = spec.cluster.gpus + 1
        rule = spec.learning.agent
        self.policy = DuelingNetwork(self.actions, rule.hidden)
        self.target = DuelingNetwork(self.actions, rule.hidden)
        self.optimiser = torch.optim.Adam(
            self.policy.parameters(), lr=rule.learning_rate, fused=True
        )
        self.replay = Replay(rule.replay)
        self.random = np.random.default_rng(spec.seed)
        self.steps = 0
        self.loss = 0.0
        self.usual_error: float | None = None
        self.exploration = 0.0  # the least epsilon that workers are asked for
        self.recent = rule.newest  # results that half of a batch is from; few after a surprise
        self._normalise(sample)

    def _normalise(self, sample: Tasks) -> None:
        state = agent_state(sample)
        self.policy.centre.copy_(torch.from_numpy(state.mean(axis=0)))
        self.policy.spread.copy_(torch.from_numpy(state.std(axis=0) + 1e-6))
        self.target.load_state_dict(self.policy.state_dict())
        self.scale = float(np.abs(np.concatenate(self._every_reward(sample))).mean()) or 1.0

    def _every_reward(self, tasks: Tasks) -> list[Floats]:
        """What the physics pays for each action: the CPU, then one GPU like the other."""
        paid = []
        for share in (0.0, 1.0):
            priced = price(tasks, np.full(len(tasks), share), self.spec)
            paid.append(self._reward(tasks, priced.time, priced.energy, priced.failed))
        return [paid[0]] + [paid[1]] * (self.actions - 1)

    def _reward(self, tasks: Tasks, time: Floats, energy: Floats, failed: Bools) -> Floats:
        return reward(*charged(tasks, time, energy, failed, self.spec), self.spec)

    def pretrain(self, tasks: Tasks) -> None:
        """Learn offline: every action of generated tasks, at the price that the physics gives."""
        state = agent_state(tasks)
        for action, paid in enumerate(self._every_reward(tasks)):
            generated = np.full(len(tasks), -1)
            self.replay.add(generated, state, np.full(len(tasks), action), paid / self.scale)
        self.learn(self.spec.learning.agent.pretrain_steps)
        seen = slice(len(self.replay))
        paid_for = self.replay.reward[seen].astype(np.float64)
        self.usual_error = self._error(self.replay.state[seen], self.replay.action[seen], paid_for)

    def remember(self, results: Results) -> float:
        """Take in results of the agent's own decisions; returns the learning steps they ask for.

        Fallback decisions (a share in between) are no action of the agent's and teach nothing.
        """
        tasks, share = results.tasks, results.share
        mine = (share == 0.0) | (share == 1.0)
        if not mine.any():
            return 0.0
        state = agent_state(tasks)[mine]
        action = np.where(share > 0, results.gpu + 1, 0).astype(np.int64)[mine]
        earned = self._reward(tasks, results.time, results.energy, results.failed)
        paid = (earned / self.scale)[mine]
        self.replay.add(tasks.task_id[mine], state, action, paid)
        rule = self.spec.learning.agent
        surprised = self._is_surprised(state, action, paid)
        self.recent = min(self.recent + len(paid), rule.newest)
        return len(paid) * (rule.steps_per_result + (rule.surprise_steps if surprised else 0.0))

    def _is_surprised(self, state: Matrix, action: NDArray[np.int64], paid: Floats) -> bool:
        """Whether the rewards are far from what was expected: then the world has changed, and it
        pays to try more and to learn more for a while, from what came since."""
        error = self._error(state, action, paid)
        rule = self.spec.learning.agent
        if self.usual_error is None:
            self.usual_error = error
        surprised = error > rule.surprise * self.usual_error + SMALL_ERROR
        # A shock must not become the usual thing at once.
        weight = 1 - (1 - ERROR_SMOOTHING) ** len(paid)
        self.usual_error += weight * (min(error, 3 * self.usual_error) - self.usual_error)
        if surprised and self.calm:
            self.recent = 0
        if surprised:
            self.exploration = rule.surprise_epsilon
        else:
            self.exploration *= 0.5 ** (len(paid) / rule.calm_down)
        return surprised

    def _error(self, state: Matrix, action: NDArray[np.int64], paid: Floats) -> float:
        """How far rewards are from what is expected, on average: as a ratio, or the few huge tasks
        would drown all others."""
        with torch.no_grad():
            expected = self.policy(torch.from_numpy(state)).numpy()[np.arange(len(paid)), action]
        off = np.log1p(np.maximum(-expected, 0.0)) - np.log1p(np.maximum(-paid, 0.0))
        return float(np.abs(off).mean())

    @property
    def calm(self) -> bool:
        """Whether the last surprise is long ago."""
        return self.exploration < self.spec.learning.agent.surprise_epsilon / 4

    def learn(self, steps: int) -> None:
        rule = self.spec.learning.agent
        if len(self.replay) < rule.batch:
            return
        for group in self.optimiser.param_groups:
            group["lr"] = rule.learning_rate * (1.0 if self.calm else rule.surprise_rate)
        for _ in range(steps):
            state, action, paid, following = self.replay.sample(
                rule.batch, self.recent, self.random
            )
            wanted = paid
            if rule.discount:
                with torch.no_grad():
                    best = self.policy(following).argmax(dim=1, keepdim=True)
                    ahead = self.target(following).gather(1, best).squeeze(1)
                    wanted = paid + rule.discount * ahead
            found = self.policy(state).gather(1, action.unsqueeze(1)).squeeze(1)
            loss = functional.smooth_l1_loss(found, wanted)
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
        """Go on from weights that were shipped."""
        tensors = load(body)
        self.scale = float(tensors.pop("scale")[0])
        self.exploration = float(tensors.pop("exploration")[0])
        self.policy.load_state_dict(tensors)
        self.target.load_state_dict(tensors)


def reward(time: Floats, energy: Floats, spec: RunSpec) -> Floats:
    weight, physics = spec.learning.energy_weight, spec.physics
    power = max(physics.gpu_watts + physics.cpu_watts, 1e-9)
    return -((1 - weight) * time + weight * energy / power)
