"""What an agent that observes the cluster is pre-trained on: placements in simulated queues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shared.domain.learning.agent_actions import AgentActions
from shared.domain.learning.device_queues import DeviceQueues
from shared.domain.tasks import Floats, Integers

STREAMS = 32  # simulated at once
RANDOM_PLACEMENTS = 0.2  # others are by earliest finish
# Rates of arrival, over that of the tasks: queues of a run may be shorter or longer.
LEAST_RATE, MOST_RATE = 0.5, 1.5


@dataclass(frozen=True, slots=True)
class Placements:
    """Each action in each state met: rows of tasks, the queue of each action before and after."""

    task: Integers
    queued: Floats
    action: Integers
    next_task: Integers
    next_queued: Floats


def simulated_placements(
    time: Floats,
    gap: Floats,
    actions: AgentActions,
    devices: int,
    count: int,
    random: np.random.Generator,
) -> Placements:
    """About `count` placements. `time`: seconds of each task (row) by each action (column); `gap`:
    seconds from the previous arrival to each task's. Streams draw tasks at random, and each device
    serves its tasks in order. Most placements are by earliest finish; the next state of every other
    action is computed, too."""
    steps = max(count // (STREAMS * len(actions)), 1)
    pace = 1 / random.uniform(LEAST_RATE, MOST_RATE, STREAMS)
    queues, stream = DeviceQueues.idle(STREAMS, devices), np.arange(STREAMS)
    task = random.integers(0, len(time), STREAMS)
    parts = []
    for _ in range(steps):
        next_task = random.integers(0, len(time), STREAMS)
        passed = pace * gap[random.integers(0, len(gap), STREAMS)]
        queued = queues.queued()
        before = actions.least(queued)
        finish = before + time[task]
        after = []
        for action, members in enumerate(actions.members):
            placed = queues.copy()
            if len(members):
                device = members[queued[:, members].argmin(axis=1)]
                placed.place(device, time[task, action])
            placed.now += passed
            after.append(placed.free)
            next_queued = actions.least(placed.queued())
            parts.append((task, before, np.full(STREAMS, action), next_task, next_queued))
        tried = random.integers(0, len(actions), STREAMS)
        by_chance = random.random(STREAMS) < RANDOM_PLACEMENTS
        chosen = np.where(by_chance, tried, finish.argmin(axis=1))
        queues = DeviceQueues(np.array(after)[chosen, stream], queues.now + passed)
        task = next_task
    return Placements(*(np.concatenate(column) for column in zip(*parts, strict=True)))
