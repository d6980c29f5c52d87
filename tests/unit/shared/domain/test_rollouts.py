"""Roll-outs against the virtual cluster, and against one simulation after the other."""

from __future__ import annotations

import numpy as np
import pytest

from services.scheduler.policies.eft import EarliestFinish
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.cluster.observation import Observation
from shared.domain.cluster.virtual_cluster import Cluster, run
from shared.domain.learning.attention_network import DeviceTypes
from shared.domain.learning.device_queues import DeviceQueues
from shared.domain.learning.rollouts import Rollouts, Sample, Streams
from shared.domain.physics import price, whole_seconds
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.domain.times import seconds
from shared.domain.workload import Cursor, generate

COUNT = 400
THREE_TYPES = {
    "devices": [
        {"type": "fast", "count": 2, "speed": 2},
        {"type": "slow", "count": 2, "memory_mb": 2000},
        {"type": "cpu", "count": 1},
    ]
}


@pytest.fixture(params=[{}, THREE_TYPES], ids=["default", "three types"])
def spec(request: pytest.FixtureRequest) -> RunSpec:
    return RunSpec.parse({"cluster": request.param, "workload": {"arrival_rate": 24}, "seed": 6})


@pytest.fixture
def tasks(spec: RunSpec) -> Tasks:
    return generate(spec, Cursor(), COUNT)[0]


def rollouts_of(tasks: Tasks, spec: RunSpec, types: DeviceTypes | None = None) -> Rollouts:
    expected = whole_seconds(tasks, spec, seconds(tasks, spec))
    sample = Sample(np.diff(tasks.arrival_time, prepend=0.0), expected, expected)
    return Rollouts(sample, types or DeviceTypes.of(spec))


def in_order(rollouts: Rollouts, copies: int) -> Streams:
    """All streams are the sample itself."""
    task = np.repeat(np.arange(COUNT)[:, None], copies, axis=1)
    return Streams(rollouts.sample.gap[task], task)


def test_a_stream_costs_what_the_virtual_cluster_says(spec: RunSpec, tasks: Tasks) -> None:
    rollouts = rollouts_of(tasks, spec)
    cluster = Cluster.idle(len(spec.platform))
    view = ClusterView(cluster, Observation(cluster.copy()), tasks, spec)
    decisions = EarliestFinish().decide(tasks, view, spec)
    device, cpu = decisions.device, decisions.cpu
    assert device is not None
    assert cpu is not None
    share = np.where(device >= 0, 1.0, 0.0)
    device, cpu = spec.platform.complete(tasks.task_id, share, device, cpu)
    priced = price(tasks, share, spec, device, cpu)
    schedule = run(
        Cluster.idle(len(spec.platform)), tasks, device, cpu, priced, "serial", spec.platform
    )
    turnaround = (schedule.finish - tasks.arrival_time).mean()
    costs = rollouts.mean_cost(in_order(rollouts, 3), rollouts.earliest_finish)
    assert costs == pytest.approx([turnaround] * 3)


def test_energy_and_money_are_added_at_their_price(spec: RunSpec, tasks: Tasks) -> None:
    platform = spec.platform
    dear = DeviceTypes.of(spec, 0.002 * platform.watts + 5.0 * platform.dollars_per_s)
    platform = spec.platform
    assert dear.running_price == pytest.approx(0.002 * platform.watts + 5 * platform.dollars_per_s)
    free, priced = rollouts_of(tasks, spec), rollouts_of(tasks, spec, dear)
    task, device = np.arange(COUNT), np.full(COUNT, len(platform) - 1)
    queued = np.random.default_rng(1).random((COUNT, len(platform)))
    price_per_second = 0.002 * platform.watts[-1] + 5 * platform.dollars_per_s[-1]
    extra = priced.place(DeviceQueues.of(queued), task, device) - free.place(
        DeviceQueues.of(queued), task, device
    )
    assert extra == pytest.approx(priced.expected[:, -1] * price_per_second)


def test_costs_to_go_are_those_of_single_simulations(spec: RunSpec, tasks: Tasks) -> None:
    rollouts, random = rollouts_of(tasks, spec), np.random.default_rng(2)
    streams = Streams.draw(rollouts.sample, 60, 4, 0.2, random)
    times = np.array([10, 17])
    queued = rollouts.states(streams, rollouts.base, times, 0.1, random)
    costs = rollouts.costs_to_go(queued, streams, times, rollouts.base, 30, 0.9, 5)
    type_of = spec.platform.type_of
    prices = np.where([kind.accelerator for kind in spec.platform.types], 1.0, 2.0)[type_of]
    for state in range(8):
        time, stream = times[state // 4], state % 4
        for device in range(len(type_of)):
            free, now, total = queued[state // 4, stream].copy(), 0.0, 0.0
            for step in range(31):
                expected = rollouts.sample.expected[streams.task[time + step, stream]][type_of]
                if step:
                    now += streams.gap[time + step, stream]
                wait = np.maximum(free - now, 0.0)
                chosen = device if step == 0 else (wait + expected * (1 + prices)).argmin()
                total += 0.9**step * (wait[chosen] + expected[chosen])
                free[chosen] = now + wait[chosen] + expected[chosen]
            assert costs[state, device] == pytest.approx(total)


def test_streams_keep_the_order_of_arrivals_and_draw_tasks_from_the_sample() -> None:
    sample = Sample(np.arange(10.0), np.ones((10, 2)), np.ones((10, 2)))
    streams = Streams.draw(sample, 25, 3, 0.0, np.random.default_rng(3))
    assert set(np.unique(streams.task)) <= set(range(10))
    for gap in streams.gap.T:
        assert (gap == (gap[0] + np.arange(25)) % 10).all()


def test_only_the_best_devices_are_tried_and_one_of_equal_ones(tasks: Tasks, spec: RunSpec) -> None:
    rollouts = rollouts_of(tasks, spec)
    task = int(np.flatnonzero(tasks.memory_required < 2000)[0])
    streams = Streams(np.full((3, 1), 0.1), np.full((3, 1), task))
    queued = np.array([[[0.0, 0.0, 3.0, 1.0, 9.0]]])
    costs = rollouts.costs_to_go(queued, streams, np.array([0]), rollouts.base, 1, 1.0, 2)
    # Device 1 is like device 0 in both clusters; of the others device 3 has the shortest queue.
    assert np.isfinite(costs).tolist() == [[True, False, False, True, False]]
