"""A schedule of faults can be had again by its seed, and leaves nothing out."""

from __future__ import annotations

from itertools import islice, pairwise, takewhile

import pytest

from tests.chaos.faults import FULL_DISK, LASTS, QUIET_SECONDS, group, lone, possible, schedule
from tests.chaos.storm import EVERYBODY, Plan

PROCESSES = ["nats", "clickhouse", "recorder", "scheduler-greedy"]
WORKERS = [f"scheduler-{name}" for name in EVERYBODY]
ALL_PROCESSES = [
    *PROCESSES,
    "generator",
    "simulator",
    "simulator-2",
    "trainer",
    "gateway",
    *WORKERS,
]


def test_a_seed_gives_the_same_schedule_again_and_another_seed_another() -> None:
    faults = possible(PROCESSES, disk=True)
    first = list(islice(schedule(7, faults), 200))
    assert first == list(islice(schedule(7, faults), 200))
    assert first == list(islice(schedule(7, possible(PROCESSES[::-1], disk=True)), 200))
    assert first != list(islice(schedule(8, faults), 200))


def test_every_fault_strikes_every_target_before_one_strikes_again() -> None:
    faults = possible(PROCESSES, disk=True)
    assert len(faults) == 3 * len(PROCESSES) + 7
    struck = [(fault.kind, fault.target) for fault in islice(schedule(3, faults), 2 * len(faults))]
    assert set(struck[: len(faults)]) == set(faults)
    assert set(struck[len(faults) :]) == set(faults)
    assert struck[: len(faults)] != struck[len(faults) :]


def test_faults_come_in_the_order_of_time_and_some_together() -> None:
    found = list(islice(schedule(1, possible(PROCESSES, disk=True), pause=(2, 5)), 300))
    gaps = [after.at - before.at for before, after in pairwise(found)]
    assert min(gaps) == 0
    assert 20 < gaps.count(0) < 120
    for fault in found:
        least, most = LASTS.get(fault.kind, (0, 0))
        assert least <= fault.seconds <= most


@pytest.mark.parametrize("seed", range(20))
def test_in_half_an_hour_every_group_strikes_alone_once(seed: int) -> None:
    plan = Plan.of(minutes=30, tasks=1_000_000, seed=seed)
    faults = possible(ALL_PROCESSES, disk=True)
    dealt = lone(seed, faults, plan.storms, plan.seconds, early=["simulator"])
    assert dealt == lone(seed, faults[::-1], plan.storms, plan.seconds, early=["simulator"])
    quiet = QUIET_SECONDS - 0.01  # times are rounded
    assert {"kill simulator", "freeze simulator", "restart simulator"} <= set(dealt[0])
    alone, others = [], 0
    for number, share in enumerate(dealt):
        due = schedule(seed * 1000 + number, faults, alone=share)
        storm = list(takewhile(lambda fault: fault.at <= plan.seconds, due))
        free_at = 0.0
        for fault, after in pairwise(storm[: len(share) + 1]):
            assert fault.at >= free_at + quiet
            free_at = fault.at + fault.seconds
            assert after.at >= free_at + quiet
            alone.append(fault.group)
        others += len(storm) - len(share)
    assert sorted(alone) == sorted({group(*fault) for fault in faults})
    assert others > len(faults)


def test_a_short_storm_leaves_time_for_faults_that_come_together() -> None:
    (share,) = lone(1, possible(ALL_PROCESSES, disk=True), 1, 120, early=[])
    assert len(share) == 2


def test_without_a_disk_of_its_own_clickhouse_s_is_never_filled() -> None:
    assert FULL_DISK not in {kind for kind, _ in possible(PROCESSES, disk=False)}


def test_workers_and_replicas_count_as_one_group() -> None:
    faults = [("kill", "scheduler-greedy"), ("kill", "nats"), ("kill", "recorder-2")]
    groups = {fault.group for fault in islice(schedule(1, faults), 3)}
    assert groups == {"kill scheduler", "kill nats", "kill recorder"}
