"""What the agent can choose: a CPU, or one of the accelerators.

Where there are more than MOST_OUTPUTS accelerators the choice is among their types. The CPUs, and
the devices of a type, take turns by task id; an agent that observes the cluster takes the one with
the least queue.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from shared.domain.hardware.platform import Platform
from shared.domain.tasks import Floats, Integers

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

    @cached_property
    def members(self) -> list[Integers]:
        """The devices of each action."""
        platform = self._platform
        if self._by_type:
            return [platform.cpus, *(platform.of_type[kind] for kind in self.accelerators)]
        return [platform.cpus, *self.accelerators[:, None]]

    @cached_property
    def action_of_device(self) -> Integers:
        """The action that each device, CPU or accelerator, is a member of."""
        actions = np.empty(len(self._platform), np.int64)
        for action, devices in enumerate(self.members):
            actions[devices] = action
        return actions

    def least(self, values: Floats, of_none: float = 0.0) -> Floats:
        """The least value of each action's devices (column), from those of all devices."""
        if values.shape[1] == len(self):  # each action has one device
            return values[:, self._in_order]
        least = np.full((len(values), len(self)), of_none)
        for action, devices in enumerate(self.members):
            if len(devices):
                least[:, action] = values[:, devices].min(axis=1)
        return least

    @cached_property
    def _in_order(self) -> Integers:
        return np.concatenate(self.members)
