"""Forks of runs: an unchanged one is its parent, bit for bit, and nothing is decided twice."""

from __future__ import annotations

from typing import Any

import pytest

from shared.domain.schedulers import LEARNERS
from tests.e2e.arena import QUICK, RULES, ArenaProcess

TASKS, SEGMENT = 400, 100
DEVICES = [{"type": "cpu", "count": 2}, {"type": "gpu", "count": 3}]
LEARNING = {**QUICK, "sync": "lockstep", "lockstep_tasks": SEGMENT}


def fork(arena: ArenaProcess, run: str, at: int, *changes: str, **more: Any) -> str:
    request = {"at": at, "changes": list(changes), **more}
    answer = arena.http.post(f"/api/runs/{run}/fork", json=request)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["run"])


def stored(arena: ArenaProcess, run: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The tasks, and every scheduler's totals at the end, without how the stream was cut."""
    tasks = f"""
        SELECT count() AS tasks, groupBitXor(cityHash64(* EXCEPT (run, batch, published_at))) AS all
        FROM tasks FINAL WHERE run = '{run}'
    """
    standings = f"""
        SELECT * EXCEPT (run, batch, published_at) FROM standings FINAL WHERE run = '{run}'
        ORDER BY scheduler, batch DESC LIMIT 1 BY scheduler
    """
    return arena.sql(tasks), arena.sql(standings)


@pytest.fixture(scope="module")
def parent(shared_arena: ArenaProcess) -> str:
    """Everybody, with noise, on two kinds of devices, some tasks waiting for others."""
    run = shared_arena.start_run(
        tasks=TASKS,
        pace="max",
        seed=9,
        schedulers=sorted({*RULES, *LEARNERS}),
        cluster={"devices": DEVICES},
        physics={"noise": 0.2},
        workload={"arrival_rate": 14, "dependencies": {"probability": 0.2}},
        learning=LEARNING,
    )
    shared_arena.complete(run)
    return run


# In the middle of a segment and of a batch; in segments whose versions have to be made again.
@pytest.mark.parametrize("at", [250, pytest.param(37, marks=pytest.mark.long)])
def test_an_unchanged_fork_is_its_parent(shared_arena: ArenaProcess, parent: str, at: int) -> None:
    run = fork(shared_arena, parent, at)
    shared_arena.complete(run)
    assert shared_arena.fingerprints(run) == shared_arena.fingerprints(parent)
    assert len(shared_arena.fingerprints(run)) == len(RULES) + len(LEARNERS)
    assert stored(shared_arena, run) == stored(shared_arena, parent)


def test_a_fork_with_a_device_more_differs_from_there_on(
    shared_arena: ArenaProcess, parent: str
) -> None:
    at = 200
    run = fork(shared_arena, parent, at, "cluster.devices.1.count=4", "schedulers=eft,round_robin")
    shared_arena.complete(run)
    shared = shared_arena.sql(f"""
        SELECT countIf(task_id < {at}) AS before, countIf(task_id >= {at} AND device = 5) AS on_new
        FROM scheduler_results FINAL WHERE run = '{run}' AND scheduler = 'round_robin'
    """)
    # Devices 0 and 1 are the CPUs: of four GPUs in rotation each gets every fourth task.
    assert shared == [{"before": at, "on_new": (TASKS - at) // 4}]
    compared = shared_arena.http.get(f"/api/runs/{run}/comparison").json()
    assert (compared["other"], compared["first"], compared["end"]) == (parent, at, TASKS)
    eft = compared["schedulers"]["eft"]
    assert eft["figures"]["avg_turnaround"] < eft["other"]["avg_turnaround"]
    assert eft["first_different"] >= at
    before = shared_arena.http.get(
        f"/api/runs/{run}/comparison", params={"other": parent, "first": 0}
    ).json()
    assert before["schedulers"]["eft"]["different"] == eft["different"]


def test_a_removed_device_takes_nothing_new(shared_arena: ArenaProcess, parent: str) -> None:
    at = 200
    # The CPUs come first: with one of them fewer every GPU has another number.
    run = fork(shared_arena, parent, at, "cluster.devices.0.count=1", "schedulers=eft")
    shared_arena.complete(run)
    columns = "task_id, gpu_time, finish, device"
    old, new = (
        shared_arena.sql(f"""
            SELECT {columns} FROM scheduler_results FINAL
            WHERE run = '{each}' AND scheduler = 'eft' AND task_id < {at} ORDER BY task_id
        """)
        for each in (parent, run)
    )
    assert [row | {"device": row["device"] - 1} for row in old] == new
    used = shared_arena.sql(f"""
        SELECT arraySort(groupUniqArray(cpu)) AS cpus, arraySort(groupUniqArray(device)) AS gpus
        FROM scheduler_results FINAL WHERE run = '{run}' AND task_id >= {at}
    """)
    assert used == [{"cpus": [0], "gpus": [1, 2, 3]}]


def test_a_fork_of_a_changed_fork_is_that_fork(shared_arena: ArenaProcess, parent: str) -> None:
    """Also where it begins among tasks that the first change still has an effect on."""
    names = "schedulers=eft,heft,greedy,bandit"
    first = fork(shared_arena, parent, 250, "cluster.devices.0.count=1", "pace=max", names)
    shared_arena.complete(first)
    second = fork(shared_arena, first, 255)
    shared_arena.complete(second)
    assert shared_arena.fingerprints(second) == shared_arena.fingerprints(first)
    assert shared_arena.fingerprints(first) != shared_arena.fingerprints(parent)


def test_a_scheduler_takes_over_the_cluster_of_another(
    shared_arena: ArenaProcess, parent: str
) -> None:
    at, change = 200, "schedulers=greedy,eft"
    run = fork(shared_arena, parent, at, change, takes_over={"eft": "greedy"})
    shared_arena.complete(run)
    rows = {
        row["scheduler"]: row
        for row in shared_arena.sql(f"""
            SELECT scheduler, groupBitXorIf(cityHash64(task_id, finish), task_id < {at}) AS before,
                   groupBitXorIf(cityHash64(task_id, finish), task_id >= {at}) AS after
            FROM scheduler_results FINAL WHERE run = '{run}' GROUP BY scheduler
        """)
    }
    assert rows["eft"]["before"] == rows["greedy"]["before"]
    assert rows["eft"]["after"] != rows["greedy"]["after"]


def test_a_changed_arrival_rate_applies_from_there_on(
    shared_arena: ArenaProcess, parent: str
) -> None:
    at, rate = 200, 28
    run = fork(shared_arena, parent, at, f"workload.arrival_rate={rate}", "schedulers=greedy")
    shared_arena.complete(run)
    gaps = """
        SELECT task_id, arrival_time - lagInFrame(arrival_time) OVER (ORDER BY task_id) AS gap
        FROM tasks FINAL WHERE run = '{}' ORDER BY task_id
    """
    old, new = (shared_arena.sql(gaps.format(each)) for each in (parent, run))
    assert [row["gap"] for row in new[:at]] == [row["gap"] for row in old[:at]]
    # Twice the rate: the gaps are half as long.
    halves = [row["gap"] / 2 for row in old[at:]]
    assert [row["gap"] for row in new[at:]] == pytest.approx(halves)


SERVICES = ("gateway", "recorder", "simulator", "generator", "trainer")


@pytest.mark.parametrize(
    "victims",
    [SERVICES, *(pytest.param((each,), marks=pytest.mark.long) for each in SERVICES)],
    ids="+".join,
)
def test_services_that_die_while_a_fork_starts_change_nothing(
    shared_arena: ArenaProcess, parent: str, victims: tuple[str, ...]
) -> None:
    run = fork(shared_arena, parent, 350, "schedulers=eft,greedy,heft,hybrid_ml,oracle")
    for victim in victims:
        shared_arena.kill(f"services.{victim}")
    shared_arena.complete(run)
    expected = {row["scheduler"]: row for row in shared_arena.fingerprints(parent)}
    assert shared_arena.fingerprints(run) == [
        expected[name] for name in ("eft", "greedy", "heft", "hybrid_ml", "oracle")
    ]
    assert stored(shared_arena, run)[0] == stored(shared_arena, parent)[0]
