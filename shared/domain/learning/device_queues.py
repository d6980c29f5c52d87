"""The queues of many clusters at once, for whole tasks that wait for no others.

Each device serves its tasks first come, first served, which for such tasks is what
`virtual_cluster` computes, bit for bit. Everything that simulates many clusters in one step is
made of this: roll-outs, the pre-training of agents, the gym's vectorised environment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shared.domain.tasks import Floats, Integers


@dataclass(slots=True)
class DeviceQueues:
    """`free`: when each device (column) of each cluster (row) has done what it was given. `now`:
    the time of each cluster."""

    free: Floats
    now: Floats

    @classmethod
    def idle(cls, clusters: int, devices: int) -> DeviceQueues:
        return cls(np.zeros((clusters, devices)), np.zeros(clusters))

    @classmethod
    def of(cls, queued: Floats) -> DeviceQueues:
        """Clusters at time 0 whose devices have these seconds of work left."""
        return cls(queued.copy(), np.zeros(len(queued)))

    def copy(self) -> DeviceQueues:
        return DeviceQueues(self.free.copy(), self.now.copy())

    def available(self) -> Floats:
        """When each device could start a task that is ready now."""
        return np.maximum(self.free, self.now[:, None])

    def queued(self) -> Floats:
        """The seconds of work that each device has left."""
        available = self.available()
        return np.subtract(available, self.now[:, None], out=available)

    def place(self, device: Integers, seconds: Floats) -> Floats:
        """Give a task to one device of each cluster; returns when it ends. A task that takes no
        time occupies nothing."""
        free = self.free.reshape(-1, copy=False)
        place = np.arange(len(device)) * self.free.shape[1] + device
        finish: Floats = np.maximum(free[place], self.now)
        finish += seconds
        occupies = seconds > 0
        if occupies.all():
            free[place] = finish
            return finish
        free[place[occupies]] = finish[occupies]
        return np.asarray(np.where(occupies, finish, self.now))
