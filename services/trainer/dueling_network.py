"""The network of `rl_agent`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from shared.domain.learning.features import AGENT_FEATURES


class DuelingNetwork(nn.Module):
    """Q(s, a) = V(s) + A(s, a) - mean A(s, .), after a fixed normalisation of the state.

    An agent that observes the cluster finds the queue q of each action behind the features of the
    task, in mean task times. The network sees q / (1 + q), which is below 1, and the cost of
    waiting that long is subtracted from the action's value: that part is known, and a queue longer
    than any before still counts as what it is.
    """

    centre: Tensor
    spread: Tensor

    def __init__(
        self, actions: int, hidden: int, *, sees_queues: bool = False, cost_of_waiting: float = 0.0
    ) -> None:
        super().__init__()
        self.inputs = inputs = len(AGENT_FEATURES) + (actions if sees_queues else 0)
        self._sees_queues, self._cost_of_waiting = sees_queues, cost_of_waiting
        self.register_buffer("centre", torch.zeros(len(AGENT_FEATURES)))
        self.register_buffer("spread", torch.ones(len(AGENT_FEATURES)))
        self.body = nn.Sequential(
            nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.value = nn.Linear(hidden, 1)
        self.advantage = nn.Linear(hidden, actions)

    def forward(self, state: Tensor) -> Tensor:
        if not self._sees_queues:
            return self._dueling((state - self.centre) / self.spread)
        task, queued = state[:, : len(self.centre)], state[:, len(self.centre) :]
        task = (task - self.centre) / self.spread
        inputs = torch.cat([task, queued / (1 + queued)], dim=1)
        q: Tensor = self._dueling(inputs) - self._cost_of_waiting * queued
        return q

    def _dueling(self, inputs: Tensor) -> Tensor:
        hidden = self.body(inputs)
        advantage = self.advantage(hidden)
        q: Tensor = self.value(hidden) + advantage - advantage.mean(dim=1, keepdim=True)
        return q
