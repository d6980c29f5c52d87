"""Tasks of real runs on the bus: when they are published, how far ahead, how long they are kept."""

from __future__ import annotations

import time

import pytest

from services.generator import emitter
from shared.domain.workload import Cursor, generate
from shared.messages import subjects
from shared.messages.runs import RunState
from tests.integration.arena import Arena, eventually, unchanged
from tests.integration.real_runs import SPEC, WaitingDevice, start_executor


async def test_tasks_are_published_a_moment_before_they_arrive(arena: Arena) -> None:
    await arena.start("generator")
    workload = {**SPEC["workload"], "arrival_rate": 4}
    run = await arena.run(schedulers=["greedy"], tasks=12, **{**SPEC, "workload": workload})
    started = time.monotonic()
    arrival = generate(run.spec, Cursor(), 12)[0].arrival_time
    await eventually(lambda: arena.tasks_sent(run), equals=12)
    # They began after the run; the last one is not there before its time.
    assert time.monotonic() - started > arrival[-1] - emitter.ARRIVAL_LEAD_SECONDS - 0.1
    sent = await arena.batches(subjects.TASKS, subjects.tasks(run.run))
    assert [batch.rows.column("arrival_time").to_pylist() for batch in sent] == [
        [moment] for moment in arrival.tolist()
    ]
    times = [batch.envelope.published_at for batch in sent]
    late = [moment > emitter.ARRIVAL_LEAD_SECONDS + 0.5 for moment in arrival]
    for before, after, waits in zip(times, times[1:], late[1:], strict=False):
        assert after >= before
        assert not waits or after - times[0] > 0.3


async def test_tasks_of_a_workflow_are_one_batch(arena: Arena) -> None:
    await arena.start("generator")
    shape = {"shape": "fork_join", "workflow_tasks": 5}
    workload = {**SPEC["workload"], "dependencies": shape}
    run = await arena.run(schedulers=["greedy"], tasks=10, **{**SPEC, "workload": workload})
    await eventually(lambda: arena.tasks_sent(run), equals=10)
    sent = await arena.batches(subjects.TASKS, subjects.tasks(run.run))
    assert [batch.rows.num_rows for batch in sent] == [5, 5]


async def test_a_paused_run_does_not_catch_up(arena: Arena) -> None:
    await arena.start("generator")
    ahead = {"mode": "real", "stretch_tasks": 500}
    run = await arena.run(schedulers=["greedy"], tasks=1000, **{**SPEC, "execution": ahead})
    await eventually(lambda: arena.tasks_sent(run), accept=lambda sent: sent > 50)
    await arena.runs.change_state(run.run, RunState.PAUSED)
    before = await unchanged(lambda: arena.tasks_sent(run), seconds=1.5)
    await arena.runs.change_state(run.run, RunState.RUNNING)
    resumed = time.monotonic()
    after = await eventually(lambda: arena.tasks_sent(run), accept=lambda sent: sent > before)
    passed = time.monotonic() - resumed
    # 40 a second, and what belongs to the lead; 60 more would have arrived during the pause.
    assert after - before < 40 * (passed + 0.5) + 40


@pytest.mark.usefixtures("impatient")
async def test_the_generator_waits_for_the_executor_and_tasks_are_kept_for_it(
    arena: Arena,
) -> None:
    """Without one, the lead is 24 batches and two stretches of 5; the recorder has all of them."""
    await arena.start("generator")
    await arena.start("recorder")
    await arena.schedulers("greedy")
    run = await arena.run(schedulers=["greedy"], tasks=60, **SPEC)
    await eventually(lambda: arena.tasks_sent(run), accept=lambda sent: sent >= 34)
    assert await unchanged(lambda: arena.tasks_sent(run), seconds=1) <= 35
    subject = subjects.tasks(run.run)
    assert await arena.count_of(subjects.TASKS, subject) == await arena.tasks_sent(run)
    await start_executor(arena, [WaitingDevice(), WaitingDevice()])
    await arena.completed(run)
    await eventually(
        lambda: arena.count_of(subjects.TASKS, subject), accept=lambda count: count == 0
    )
