"""Workers on a real bus: what they decide, when they acknowledge, how they fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared import subjects
from shared.batches import Batch, task_rows
from shared.runs import RunRecord
from shared.service import Service
from shared.stream import Position
from shared.workload import Cursor, generate
from tests.integration.arena import Arena, connect, eventually, policy_file, rows_of, unchanged


async def send_tasks(arena: Arena, run: RunRecord, count: int, each: int = 10) -> list[Batch]:
    """`count` batches, as the generator would send them."""
    position, sent = Position(), []
    for _ in range(count):
        tasks, cursor = generate(run.spec, position.cursor, each)
        batch = position.next_message(run.run, tasks, cursor)
        sequence = await arena.bus.publish_batch(batch, after=position.sequence)
        position = position.after(batch, cursor, sequence)
        sent.append(batch)
    return sent


async def decisions(arena: Arena, run: RunRecord, scheduler: str) -> list[Batch]:
    return await arena.batches(subjects.DECISIONS, subjects.decisions(run.run, scheduler))


async def decided(arena: Arena, run: RunRecord, scheduler: str, count: int) -> list[Batch]:
    """The decisions, once there are `count` and no more come; ordered by batch."""

    async def enough() -> bool:
        return len(await decisions(arena, run, scheduler)) >= count

    await eventually(enough, f"{count} decisions of {scheduler}")
    found = await decisions(arena, run, scheduler)
    return sorted(found, key=lambda batch: batch.envelope.batch)


async def reader(arena: Arena, scheduler: str) -> tuple[int, int]:
    """Batches that the scheduler has, and how far it has acknowledged."""
    info = await arena.stream.consumer_info(subjects.TASKS, subjects.scheduler_durable(scheduler))
    assert info.ack_floor is not None
    return info.num_ack_pending or 0, info.ack_floor.stream_seq


def counted(service: Service) -> float:
    return service.registry.get_sample_value("hybrid_decided_tasks_total") or 0.0


async def test_a_decision_is_the_task_with_the_decision_behind_it(arena: Arena) -> None:
    await arena.schedulers("greedy")
    spec = {"cluster": {"gpus": 3}, "workload": {"dependencies": {"probability": 0.5}}}
    run = await arena.run(schedulers=["greedy"], **spec)
    (sent,) = await send_tasks(arena, run, 1, each=40)
    (decision,) = await decided(arena, run, "greedy", 1)
    assert decision.rows.select(sent.rows.schema.names).equals(sent.rows)
    columns = decision.rows.to_pydict()
    assert columns["gpu_fraction"] == columns["compute_intensity"]
    assert columns["gpu"] == [number % 3 for number in range(40)]
    assert columns["model_version"] == [0] * 40
    assert columns["explored"] == [False] * 40
    assert columns["probability"] == [1.0] * 40
    assert decision.envelope.published_at == sent.envelope.published_at
    assert (decision.envelope.batch, decision.envelope.scheduler) == (0, "greedy")


async def test_a_task_is_acknowledged_only_after_its_decision_is_stored(arena: Arena) -> None:
    """A full stream refuses the decision; until there is room the task is the worker's."""
    small = await connect(arena.settings.model_copy(update={"decisions_max_bytes": 15_000}))
    await small.broker.stop()
    worker = await arena.start("scheduler", policy="greedy")
    await arena.bus.publish(
        "decisions.x.y", b"x" * 14_000, stream=subjects.DECISIONS, message_id="ballast"
    )
    run = await arena.run(schedulers=["greedy"])
    await send_tasks(arena, run, 1, each=40)

    async def refused() -> bool:
        full = worker.registry.get_sample_value(
            "hybrid_stream_full_total", {"stream": subjects.DECISIONS}
        )
        return (full or 0) >= 3

    await eventually(refused)
    assert await reader(arena, "greedy") == (1, 0)
    await arena.stream.purge_stream(subjects.DECISIONS)

    async def acknowledged() -> bool:
        return await reader(arena, "greedy") == (0, 1)

    await eventually(acknowledged)
    assert len(await decisions(arena, run, "greedy")) == 1


NONSENSE = {
    "raises": ("raise RuntimeError('on fire')", "on fire"),
    "nothing": ("return None", "AttributeError"),
    "short": ("return Decisions(np.zeros(len(tasks) - 1))", "shape (9,) for 10 tasks"),
    "too_much": ("return Decisions(np.full(len(tasks), 1.5))", "must be 0..1, got 1.5"),
    "nan": ("return Decisions(np.full(len(tasks), np.nan))", "must be 0..1, got nan"),
    "no_gpu": (
        "return Decisions(np.ones(len(tasks)), gpu=np.full(len(tasks), 4))",
        "gpu must be 0..3",
    ),
    "odd_gpus": ("return Decisions(np.ones(len(tasks)), gpu=np.zeros(3))", "gpu has shape (3,)"),
}


async def test_a_policy_that_fails_is_reported_and_harms_nobody_else(
    arena: Arena, tmp_path: Path
) -> None:
    for name, (body, _) in NONSENSE.items():
        await arena.start("scheduler", policy=policy_file(tmp_path, name, body))
    await arena.schedulers("greedy")
    run = await arena.run(schedulers=["greedy", *NONSENSE])
    await send_tasks(arena, run, 2)
    await decided(arena, run, "greedy", 2)

    async def told() -> bool:
        return len(await arena.events("policy_failed")) == 2 * len(NONSENSE)

    await eventually(told)
    events = await arena.events("policy_failed")
    for name, (_, reason) in NONSENSE.items():
        for batch in range(2):
            note = f"{name} cannot decide batch {batch}: "
            (event,) = [event for event in events if note in event]
            assert reason in event
        # Held, to be tried again: neither acknowledged nor rejected.
        assert (await reader(arena, name))[1] == 0
    assert await arena.count(subjects.DECISIONS) == 2
    assert await arena.dead_letters() == []


async def test_a_policy_that_is_mended_goes_on_where_it_failed(
    arena: Arena, tmp_path: Path
) -> None:
    broken = policy_file(tmp_path, "own", "raise RuntimeError('on fire')")
    worker = await arena.start("scheduler", policy=broken)
    run = await arena.run(schedulers=["own"])
    sent = await send_tasks(arena, run, 5)

    async def told() -> bool:
        return len(await arena.events("policy_failed")) == 5

    await eventually(told)
    await arena.stop(worker)
    mended = policy_file(tmp_path, "own", "return Decisions(np.full(len(tasks), 0.25))")
    await arena.start("scheduler", policy=mended)
    found = await decided(arena, run, "own", 5)
    assert [batch.envelope.batch for batch in found] == [0, 1, 2, 3, 4]
    names = sent[0].rows.schema.names
    assert rows_of(found).select(names).equals(rows_of(sent))


async def test_a_run_that_does_not_name_the_scheduler_is_skipped(arena: Arena) -> None:
    await arena.schedulers("greedy", "oracle")
    run = await arena.run(schedulers=["oracle"])
    await send_tasks(arena, run, 3)
    await decided(arena, run, "oracle", 3)

    async def acknowledged() -> bool:
        return await reader(arena, "greedy") == (0, 3)

    await eventually(acknowledged)
    assert await decisions(arena, run, "greedy") == []
    assert await arena.dead_letters() == []


async def test_two_workers_share_the_work(arena: Arena) -> None:
    workers = await arena.schedulers("greedy", "greedy")
    run = await arena.run(schedulers=["greedy"])
    sent = await send_tasks(arena, run, 60)
    found = await decided(arena, run, "greedy", 60)
    assert [batch.envelope.batch for batch in found] == list(range(60))
    assert rows_of(found).select(sent[0].rows.schema.names).equals(rows_of(sent))
    done = [counted(worker) for worker in workers]
    assert sum(done) == 600
    assert min(done) > 0


async def test_a_killed_worker_loses_no_task(arena: Arena, tmp_path: Path) -> None:
    """One is killed in the middle of a batch; what it held goes to the next."""
    mark = tmp_path / "taken"
    hanging = policy_file(
        tmp_path, "own", f"open({str(mark)!r}, 'w').close(); __import__('time').sleep(60)"
    )
    worker = arena.process("scheduler", policy=hanging)

    async def deployed() -> bool:
        return bool(await arena.bus.roll_call())

    await eventually(deployed)
    run = await arena.run(schedulers=["own"])
    await send_tasks(arena, run, 6)

    async def taken() -> bool:
        return mark.exists()

    await eventually(taken)
    worker.kill()
    worker.wait(10)
    held, floor = await reader(arena, "own")
    assert held > 0
    assert floor == 0
    working = policy_file(tmp_path, "own", "return Decisions(np.zeros(len(tasks)))")
    await arena.start("scheduler", policy=working)
    found = await decided(arena, run, "own", 6)
    assert [batch.envelope.batch for batch in found] == list(range(6))


async def test_a_batch_that_is_delivered_twice_is_decided_once(arena: Arena) -> None:
    """A worker that publishes and dies before it acknowledges leaves its batch to another."""
    (worker,) = await arena.schedulers("greedy")
    run = await arena.run(schedulers=["greedy"])
    await send_tasks(arena, run, 3)
    await decided(arena, run, "greedy", 3)
    await arena.stop(worker)
    # The durable forgets what was acknowledged: everything is delivered again.
    await arena.stream.delete_consumer(subjects.TASKS, subjects.scheduler_durable("greedy"))
    (again,) = await arena.schedulers("greedy")

    async def decided_again() -> bool:
        return counted(again) == 30

    await eventually(decided_again)
    assert len(await decisions(arena, run, "greedy")) == 3


async def test_tasks_of_an_unknown_run_become_one_dead_letter(arena: Arena) -> None:
    await arena.schedulers("greedy", "oracle")
    run = await arena.run(schedulers=["greedy"])
    tasks, cursor = generate(run.spec, Cursor(), 5)
    stray = Position().next_message("unknown", tasks, cursor)
    assert stray.rows.equals(task_rows(tasks))
    await arena.bus.publish_batch(stray)

    async def read_by_both() -> bool:
        return [await reader(arena, name) for name in ("greedy", "oracle")] == [(0, 1)] * 2

    await eventually(read_by_both)
    (letter,) = await arena.dead_letters()
    assert letter["Hybrid-Reason"] == "no run 'unknown'"


async def test_a_worker_that_hears_of_a_run_late_decides_it_all(arena: Arena) -> None:
    run = await arena.run(schedulers=["greedy"])
    await send_tasks(arena, run, 4)
    await arena.schedulers("greedy")
    found: list[Any] = await decided(arena, run, "greedy", 4)
    assert [batch.envelope.batch for batch in found] == [0, 1, 2, 3]

    async def count() -> int:
        return await arena.count(subjects.DECISIONS)

    assert await unchanged(count) == 4
