"""The transitions that `rl_agent` learns from."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from services.trainer.agent_transitions import Transitions


class ReplayBuffer:
    """The newest transitions, in arrays of fixed size."""

    def __init__(self, size: int, inputs: int) -> None:
        self.task_id = np.zeros(size, np.int64)
        self.state = np.zeros((size, inputs), np.float32)
        self.action = np.zeros(size, np.int64)
        self.reward = np.zeros(size, np.float32)
        self.next_state = np.zeros((size, inputs), np.float32)
        self._size, self._written = size, 0

    def __len__(self) -> int:
        return min(self._written, self._size)

    def task_range(self) -> tuple[int, int]:
        """The oldest and the newest task id; -1: generated, or there are none."""
        oldest, newest = self._written - len(self), self._written - 1
        return int(self.task_id[oldest % self._size]), int(self.task_id[newest % self._size])

    def add(self, new: Transitions) -> None:
        start = max(len(new) - self._size, 0)
        index = (self._written + np.arange(start, len(new))) % self._size
        self.task_id[index] = new.task_id[start:]
        self.state[index] = new.state[start:]
        self.action[index] = new.action[start:]
        self.reward[index] = new.reward[start:]
        self.next_state[index] = new.next_state[start:]
        self._written += len(new)

    def transitions(self) -> Transitions:
        """All of them."""
        rows = slice(len(self))
        return Transitions(
            task_id=self.task_id[rows],
            state=self.state[rows],
            action=self.action[rows],
            reward=self.reward[rows].astype(np.float64),
            next_state=self.next_state[rows],
        )

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
