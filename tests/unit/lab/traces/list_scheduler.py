"""A list scheduler on a discrete-event simulation, and workflows to try it with.

Written without the code of the product: it knows the seconds of each task on each device and the
parents of each task, and nothing else.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np


def list_schedule(
    seconds: Sequence[Sequence[float]], parents: Sequence[Sequence[int]]
) -> list[float]:
    """When each task finishes if, whenever a task is ready and a device idle, the first task of
    the list that is ready starts on the idle device on which it is fastest.

    `seconds[task][device]`.
    """
    children: list[list[int]] = [[] for _ in parents]
    waits_for = [len(set(each)) for each in parents]
    for task, each in enumerate(parents):
        for parent in set(each):
            children[parent].append(task)
    ready = [task for task, count in enumerate(waits_for) if count == 0]
    idle = set(range(len(seconds[0])))
    running: list[tuple[float, int, int]] = []
    finish = [0.0] * len(parents)
    now = 0.0
    while ready or running:
        while ready and idle:
            task = heapq.heappop(ready)
            device = min(idle, key=lambda each: (seconds[task][each], each))
            idle.remove(device)
            heapq.heappush(running, (now + seconds[task][device], task, device))
        now, task, device = heapq.heappop(running)
        finish[task] = now
        idle.add(device)
        for child in children[task]:
            waits_for[child] -= 1
            if waits_for[child] == 0:
                heapq.heappush(ready, child)
    return finish


def layered_workflow(seed: int, layers: int, widest: int) -> tuple[list[float], list[list[int]]]:
    """Seconds and parents of tasks in layers, with waiting that differs within each layer."""
    random = np.random.default_rng(seed)
    seconds: list[float] = []
    parents: list[list[int]] = []
    before: list[int] = []
    for _ in range(layers):
        layer = []
        for _ in range(int(random.integers(1, widest + 1))):
            layer.append(len(seconds))
            seconds.append(float(random.lognormal(2, 1)))
            count = min(int(random.integers(1, 5)), len(before))
            parents.append(sorted(random.choice(before, count, replace=False).tolist()))
        before = layer
    return seconds, parents
