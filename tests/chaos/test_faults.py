"""A schedule of faults can be had again by its seed, and leaves nothing out."""

from __future__ import annotations

from itertools import islice, pairwise

from tests.chaos.faults import FULL_DISK, LASTS, QUIET_SECONDS, possible, schedule

PROCESSES = ["nats", "clickhouse", "recorder", "scheduler-greedy"]


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


def test_faults_come_in_the_order_of_time_some_together_and_some_alone() -> None:
    found = list(islice(schedule(1, possible(PROCESSES, disk=True), pause=(2, 5)), 300))
    gaps = [after.at - before.at for before, after in pairwise(found)]
    assert min(gaps) == 0
    assert 20 < gaps.count(0) < 120
    ends = [after.at - before.at - before.seconds for before, after in pairwise(found)]
    alone = [i for i in range(1, 299) if gaps[i - 1] >= QUIET_SECONDS and ends[i] >= QUIET_SECONDS]
    assert 40 < len(alone) < 120
    for fault in found:
        least, most = LASTS.get(fault.kind, (0, 0))
        assert least <= fault.seconds <= most


def test_without_a_disk_of_its_own_clickhouse_s_is_never_filled() -> None:
    assert FULL_DISK not in {kind for kind, _ in possible(PROCESSES, disk=False)}


def test_workers_count_as_one_group() -> None:
    faults = [("kill", "scheduler-greedy"), ("kill", "nats")]
    groups = {fault.group for fault in islice(schedule(1, faults), 2)}
    assert groups == {"kill scheduler", "kill nats"}
