"""A schedule of faults is reproducible from its seed, and leaves no fault out."""

from __future__ import annotations

from itertools import islice, pairwise, takewhile

import pytest

from shared.domain.schedulers import BUILT_IN
from tests.chaos.faults import (
    FULL_DISK,
    LASTS,
    QUIET_SECONDS,
    faults_alone,
    group,
    possible_faults,
    schedule,
)
from tests.chaos.rounds import Plan

PROCESSES = ["nats", "clickhouse", "recorder", "scheduler-greedy"]
WORKERS = [f"scheduler-{name}" for name in BUILT_IN]
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
    faults = possible_faults(PROCESSES, disk=True)
    first = list(islice(schedule(7, faults), 200))
    assert first == list(islice(schedule(7, faults), 200))
    assert first == list(islice(schedule(7, possible_faults(PROCESSES[::-1], disk=True)), 200))
    assert first != list(islice(schedule(8, faults), 200))


def test_every_fault_hits_every_target_before_one_comes_again() -> None:
    faults = possible_faults(PROCESSES, disk=True)
    assert len(faults) == 3 * len(PROCESSES) + 7
    injected = [
        (fault.kind, fault.target) for fault in islice(schedule(3, faults), 2 * len(faults))
    ]
    assert set(injected[: len(faults)]) == set(faults)
    assert set(injected[len(faults) :]) == set(faults)
    assert injected[: len(faults)] != injected[len(faults) :]


def test_faults_come_in_the_order_of_time_and_some_together() -> None:
    found = list(islice(schedule(1, possible_faults(PROCESSES, disk=True), pause=(2, 5)), 300))
    gaps = [after.at - before.at for before, after in pairwise(found)]
    assert min(gaps) == 0
    assert 20 < gaps.count(0) < 120
    for fault in found:
        least, most = LASTS.get(fault.kind, (0, 0))
        assert least <= fault.seconds <= most


@pytest.mark.parametrize("seed", range(20))
def test_in_half_an_hour_every_group_comes_alone_once(seed: int) -> None:
    plan = Plan.of(minutes=30, tasks=1_000_000, seed=seed)
    faults = possible_faults(ALL_PROCESSES, disk=True)
    alone_in = faults_alone(seed, faults, plan.rounds, plan.seconds, early=["simulator"])
    assert alone_in == faults_alone(
        seed, faults[::-1], plan.rounds, plan.seconds, early=["simulator"]
    )
    quiet = QUIET_SECONDS - 0.01  # times are rounded
    assert {"kill simulator", "freeze simulator", "restart simulator"} <= set(alone_in[0])
    alone, others = [], 0
    for number, share in enumerate(alone_in):
        due = schedule(seed * 1000 + number, faults, alone=share)
        in_time = list(takewhile(lambda fault: fault.at <= plan.seconds, due))
        free_at = 0.0
        for fault, after in pairwise(in_time[: len(share) + 1]):
            assert fault.at >= free_at + quiet
            free_at = fault.at + fault.seconds
            assert after.at >= free_at + quiet
            alone.append(fault.group)
        others += len(in_time) - len(share)
    assert sorted(alone) == sorted({group(*fault) for fault in faults})
    assert others > len(faults)


def test_a_short_round_leaves_time_for_faults_that_come_together() -> None:
    (share,) = faults_alone(1, possible_faults(ALL_PROCESSES, disk=True), 1, 120, early=[])
    assert len(share) == 2


def test_without_a_separate_disk_that_of_clickhouse_is_never_filled() -> None:
    assert FULL_DISK not in {kind for kind, _ in possible_faults(PROCESSES, disk=False)}


def test_workers_and_replicas_count_as_one_group() -> None:
    faults = [("kill", "scheduler-greedy"), ("kill", "nats"), ("kill", "recorder-2")]
    groups = {fault.group for fault in islice(schedule(1, faults), 3)}
    assert groups == {"kill scheduler", "kill nats", "kill recorder"}
