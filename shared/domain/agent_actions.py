"""What the agent can choose: a CPU, or one of the accelerators.

Where there are more than MOST_OUTPUTS accelerators the choice is among their types, and the devices
of a type take turns by task id.
"""

from __future__ import annotations

import numpy as np

from shared.domain.platform import Platform
from shared.domain.tasks import Integers

MOST_OUTPUTS = 64
CPU = 0  # the action; those above it are accelerators


class AgentActions:
    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._by_type = len(platform.accelerators) > MOST_OUTPUTS
        kinds = [number for number, each in enumerate(platform.types) if each.accelerator]
        self.accelerators = np.array(kinds) if self._by_type else platform.accelerators
        # How many devices each accelerator's action stands for.
        self.devices = platform.counts[kinds] if self._by_type else np.ones(len(self) - 1, np.int64)

    def __len__(self) -> int:
        return 1 + len(self.accelerators)

    def kind(self, action: int) -> int:
        """The device type of an accelerator's action."""
        number = int(self.accelerators[action - 1])
        return number if self._by_type else int(self._platform.type_of[number])

    def device(self, action: Integers, task_id: Integers) -> Integers:
        """The device of each action; for a CPU's, the accelerator in rotation."""
        device = self._platform.rotate(task_id)
        rows = np.flatnonzero(action > CPU)
        chosen = self.accelerators[action[rows] - 1]
        if self._by_type:
            chosen = self._platform.rotate_within(chosen, task_id[rows])
        device[rows] = chosen
        return device

    def action_of(self, device: Integers) -> Integers:
        """The action that chose each accelerator."""
        number = self._platform.type_of[device] if self._by_type else device
        return 1 + np.searchsorted(self.accelerators, number)
