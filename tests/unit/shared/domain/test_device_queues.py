"""Queues of many clusters beside the virtual cluster, which serves one at a time."""

from __future__ import annotations

import numpy as np

from shared.domain.cluster.virtual_cluster import Cluster, run
from shared.domain.learning.device_queues import DeviceQueues
from shared.domain.physics import price
from shared.domain.spec import RunSpec
from shared.domain.workload import Cursor, generate

CLUSTERS, TASKS = 4, 300


def test_every_cluster_is_served_as_the_virtual_cluster_serves_it() -> None:
    spec = RunSpec.parse(
        {"cluster": {"gpu_memory_mb": 10**6}, "workload": {"arrival_rate": 30}, "seed": 8}
    )
    platform, (tasks, _) = spec.platform, generate(spec, Cursor(), TASKS)
    chosen = np.random.default_rng(1).integers(0, len(platform), (TASKS, CLUSTERS))
    finish, taken = np.empty((CLUSTERS, TASKS)), np.empty((CLUSTERS, TASKS))
    for number, device in enumerate(chosen.T):
        share = np.isin(device, platform.accelerators).astype(np.float64)
        completed = platform.complete(
            tasks.task_id, share, np.where(share > 0, device, -1), np.where(share > 0, -1, device)
        )
        priced = price(tasks, share, spec, *completed)
        taken[number] = priced.gpu_time + priced.cpu_time
        schedule = run(Cluster.idle(len(platform)), tasks, *completed, priced, "serial", platform)
        finish[number] = schedule.finish

    queues = DeviceQueues.idle(CLUSTERS, len(platform))
    for number, arrival in enumerate(tasks.arrival_time):
        queues.now[:] = arrival
        ends = queues.place(chosen[number], taken[:, number])
        np.testing.assert_array_equal(ends, finish[:, number])


def test_queues_are_what_is_left_of_the_work() -> None:
    queues = DeviceQueues.of(np.array([[3.0, 1.0], [0.0, 2.0]]))
    queues.now += 2.0
    assert queues.queued().tolist() == [[1.0, 0.0], [0.0, 0.0]]
    assert queues.place(np.array([0, 1]), np.array([4.0, 5.0])).tolist() == [7.0, 7.0]
    assert queues.queued().tolist() == [[5.0, 0.0], [0.0, 5.0]]


def test_a_task_without_time_occupies_nothing_and_a_copy_is_its_own() -> None:
    queues = DeviceQueues.of(np.array([[3.0, 1.0], [1.0, 0.0]]))
    copy = queues.copy()
    assert copy.place(np.array([0, 0]), np.array([0.0, 2.0])).tolist() == [0.0, 3.0]
    assert copy.free.tolist() == [[3.0, 1.0], [3.0, 0.0]]
    assert queues.free.tolist() == [[3.0, 1.0], [1.0, 0.0]]
