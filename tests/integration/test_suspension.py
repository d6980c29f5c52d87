"""A scheduler that keeps failing is suspended in the run, which goes on without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.bus import suspension
from shared.errors import NotAllowed
from shared.messages import subjects
from shared.messages.runs import RunRecord, RunState, Suspension, SuspensionRequest
from tests.integration.arena import Arena, eventually, policy_file

FAILS = "return Decisions(gpu_fraction=np.full(len(tasks), 1.7))"
WORKS = "return Decisions(gpu_fraction=np.full(len(tasks), 0.25))"
FAILS_LATER = f"{WORKS} if tasks.task_id[0] < 30 else {FAILS.removeprefix('return ')}"
CLUSTER_POLICY = """
from services.scheduler.policy import ClusterPolicy


class Own(ClusterPolicy):
    name = "own"

    def decide(self, tasks, cluster, spec):
        for _ in cluster.arrivals():
            {line}
            cluster.place(0)
        return cluster.decisions()
"""

RESULT_COUNTS = """
    SELECT scheduler, count() AS results, uniqExact(task_id) AS tasks, min(task_id) AS first
    FROM scheduler_results FINAL WHERE run = {run:String} GROUP BY scheduler ORDER BY scheduler
"""


async def start(arena: Arena, *policies: str) -> None:
    for service in ("generator", "simulator", "recorder"):
        await arena.start(service)
    await arena.schedulers(*policies)


async def suspended(arena: Arena, run: RunRecord, scheduler: str = "own") -> Suspension:
    async def read() -> Suspension | None:
        return (await arena.runs.get(run.run)).suspended.get(scheduler)

    found: Suspension = await eventually(read, f"{scheduler} is suspended")
    return found


async def next_batch(arena: Arena, run: RunRecord, scheduler: str) -> int:
    """The one after its last results."""
    last = await arena.bus.last_message(subjects.results(run.run, scheduler), subjects.RESULTS)
    return 0 if last is None else last.envelope.batch + 1


async def test_a_run_completes_without_a_scheduler_that_keeps_failing(
    arena: Arena, tmp_path: Path
) -> None:
    await start(arena, "greedy", policy_file(tmp_path, "own", FAILS))
    run = await arena.run(schedulers=["greedy", "own"], tasks=300)
    found = await suspended(arena, run)
    assert (found.batch, found.next_batch) == (0, 0)
    assert "own: gpu_fraction must be 0..1, got 1.7" in found.reason
    await arena.completed(run)
    stored = arena.store.query(RESULT_COUNTS, {"run": run.run})
    assert stored == [{"scheduler": "greedy", "results": 300, "tasks": 300, "first": 0}]
    (event,) = await arena.events("suspended")
    assert f"own is suspended in run {run.run}: it keeps failing on batch 0" in event
    assert len(await arena.events("policy_failed")) == 1
    with pytest.raises(NotAllowed, match="is completed"):
        await suspension.retry(arena.bus, arena.runs, run.run, "own")


@pytest.mark.parametrize("kind", ["tasks", "cluster"])
async def test_a_fixed_policy_continues_where_it_failed(
    arena: Arena, tmp_path: Path, kind: str
) -> None:
    """Its file is loaded again; the worker need not be restarted."""

    def write(task_rule: str, cluster_line: str) -> str:
        if kind == "tasks":
            return policy_file(tmp_path, "own", task_rule)
        path = tmp_path / "own.py"
        path.write_text(CLUSTER_POLICY.format(line=cluster_line))
        return str(path)

    policy = write(FAILS_LATER, "assert tasks.task_id[0] < 30, 'on fire'")
    await start(arena, "greedy", policy, policy)
    run = await arena.run(schedulers=["greedy", "own"], pace=200)
    found = await suspended(arena, run)
    assert found.next_batch <= found.batch
    # Many batches more: the others go on, and the streams are trimmed only behind what is missing.
    await eventually(
        lambda: next_batch(arena, run, "greedy"), accept=lambda at: at > found.batch + 30
    )
    # Two workers may fail on different batches; the first one to give up reports its own.
    assert await next_batch(arena, run, "own") == found.next_batch
    write(WORKS, "pass")
    record = await suspension.retry(arena.bus, arena.runs, run.run, "own")
    assert (record.suspended, record.resumed["own"].sequence) == ({}, found.next_sequence)
    sent = await next_batch(arena, run, "greedy")
    await eventually(lambda: next_batch(arena, run, "own"), accept=lambda at: at > sent + 10)
    await arena.runs.change_state(run.run, RunState.STOPPED)
    rows = await eventually(
        lambda: arena.store.query(RESULT_COUNTS, {"run": run.run}), accept=lambda rows: rows[1:]
    )
    assert [(row["scheduler"], row["first"]) for row in rows] == [("greedy", 0), ("own", 0)]
    assert rows[1]["results"] == rows[1]["tasks"]
    assert not await arena.dead_letters()


async def test_a_policy_that_fails_again_is_suspended_again(arena: Arena, tmp_path: Path) -> None:
    policy = policy_file(tmp_path, "own", FAILS)
    await start(arena, "greedy", policy)
    run = await arena.run(schedulers=["greedy", "own"], pace=50)
    first = await suspended(arena, run)
    await suspension.retry(arena.bus, arena.runs, run.run, "own")
    second = await suspended(arena, run)
    assert (second.next_batch, second.next_sequence) == (first.next_batch, first.next_sequence)
    policy_file(tmp_path, "own", "return 1 +")
    await suspension.retry(arena.bus, arena.runs, run.run, "own")
    third = await suspended(arena, run)
    assert "cannot be loaded: SyntaxError" in third.reason
    policy_file(tmp_path, "own", WORKS)
    await suspension.retry(arena.bus, arena.runs, run.run, "own")
    await eventually(lambda: next_batch(arena, run, "own"), accept=lambda at: at > 5)


async def test_a_failure_of_before_a_retry_does_not_suspend_again(
    arena: Arena, tmp_path: Path
) -> None:
    """Another worker may report it late."""
    await start(arena, "greedy", policy_file(tmp_path, "own", FAILS))
    run = await arena.run(schedulers=["greedy", "own"], pace=50)
    await suspended(arena, run)
    policy_file(tmp_path, "own", WORKS)
    retry = (await suspension.retry(arena.bus, arena.runs, run.run, "own")).resumed["own"]
    late = SuspensionRequest(run=run.run, scheduler="own", reason="on fire", retried_at=0.0)
    record = await suspension.suspend(arena.bus, arena.runs, late)
    assert record.suspended == {}
    new = late.model_copy(update={"retried_at": retry.at})
    record = await suspension.suspend(arena.bus, arena.runs, new)
    assert record.suspended["own"].reason == "on fire"


async def test_a_scheduler_that_is_left_out_stays_out(arena: Arena, tmp_path: Path) -> None:
    await start(arena, "greedy", policy_file(tmp_path, "own", FAILS))
    run = await arena.run(schedulers=["greedy", "own"], pace=50)
    with pytest.raises(NotAllowed, match="greedy is not suspended"):
        await suspension.leave_out(arena.bus, arena.runs, run.run, "greedy")
    await suspended(arena, run)
    # Kept for a retry, and only until there will be none.
    first = (await arena.messages(subjects.TASKS, subjects.tasks(run.run)))[0].seq
    record = await suspension.leave_out(arena.bus, arena.runs, run.run, "own")
    assert record.suspended["own"].left_out
    for action in (suspension.retry, suspension.leave_out):
        with pytest.raises(NotAllowed, match="which is final"):
            await action(arena.bus, arena.runs, run.run, "own")

    async def oldest() -> int:
        stored = await arena.messages(subjects.TASKS, subjects.tasks(run.run))
        return int(stored[0].seq)

    await eventually(oldest, "tasks are trimmed", accept=lambda sequence: sequence > first)


async def test_a_retry_whose_tasks_are_gone_says_so(arena: Arena, tmp_path: Path) -> None:
    await start(arena, "greedy", policy_file(tmp_path, "own", FAILS))
    run = await arena.run(schedulers=["greedy", "own"], pace=50)
    await suspended(arena, run)
    await eventually(lambda: next_batch(arena, run, "greedy"), accept=lambda at: at > 5)
    await arena.jetstream.purge_stream(subjects.TASKS, subject=subjects.tasks(run.run), keep=1)
    with pytest.raises(NotAllowed, match=r"batches 0 to \d+, which it has not decided"):
        await suspension.retry(arena.bus, arena.runs, run.run, "own")


async def test_other_runs_of_the_scheduler_are_not_affected(arena: Arena, tmp_path: Path) -> None:
    """The policy fails in one run only, by its seed."""
    rule = FAILS_LATER.replace("tasks.task_id[0] < 30", "spec.seed != 13")
    await start(arena, "greedy", policy_file(tmp_path, "own", rule))
    broken = await arena.run(schedulers=["greedy", "own"], pace=20, seed=13)
    await suspended(arena, broken)
    run = await arena.run(schedulers=["own"], tasks=500)
    await arena.completed(run)
    assert await next_batch(arena, broken, "own") == 0
