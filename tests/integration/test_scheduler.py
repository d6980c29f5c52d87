"""Workers on a real bus: decisions, acknowledgements, failures."""

from __future__ import annotations

from pathlib import Path

from shared.bus.service import Service
from shared.bus.task_stream import Position
from shared.domain.workload import Cursor, generate
from shared.messages import subjects
from shared.messages.batches import TASKS, Batch, task_rows
from shared.messages.runs import RunRecord
from tests.integration.arena import Arena, connect, eventually, policy_file, rows_of, unchanged


async def send_tasks(arena: Arena, run: RunRecord, count: int, each: int = 10) -> list[Batch]:
    """Publish `count` batches as the generator does."""
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
    """The decisions once there are `count`, ordered by batch."""
    await eventually(
        lambda: decisions(arena, run, scheduler),
        f"{count} decisions of {scheduler}",
        accept=lambda rows: len(rows) >= count,
    )
    return sorted(await decisions(arena, run, scheduler), key=lambda batch: batch.envelope.batch)


async def consumer(arena: Arena, scheduler: str) -> tuple[int, int]:
    """The scheduler's unacknowledged batches and its ack floor."""
    info = await arena.jetstream.consumer_info(
        subjects.TASKS, subjects.scheduler_durable(scheduler)
    )
    return info.num_ack_pending or 0, info.ack_floor.stream_seq


def decided_tasks(service: Service) -> float:
    return service.registry.get_sample_value("hybrid_decided_tasks_total") or 0.0


async def test_a_decision_has_the_columns_of_the_task_and_its_own(arena: Arena) -> None:
    await arena.schedulers("greedy")
    spec = {"cluster": {"gpus": 3}, "workload": {"dependencies": {"probability": 0.5}}}
    run = await arena.run(schedulers=["greedy"], **spec)
    (sent,) = await send_tasks(arena, run, 1, each=40)
    (decision,) = await decided(arena, run, "greedy", 1)
    assert decision.rows.select(sent.rows.schema.names).equals(sent.rows)
    columns = decision.rows.to_pydict()
    assert columns["gpu_fraction"] == columns["compute_intensity"]
    assert columns["device"] == [number % 3 for number in range(40)]
    assert columns["cpu"] == [3] * 40
    assert columns["model_version"] == [0] * 40
    assert columns["explored"] == [False] * 40
    assert columns["probability"] == [1.0] * 40
    assert decision.envelope.published_at == sent.envelope.published_at
    assert (decision.envelope.batch, decision.envelope.scheduler) == (0, "greedy")


async def test_a_task_is_acknowledged_only_after_its_decision_is_stored(arena: Arena) -> None:
    """A full stream refuses the decision; until there is room the task stays unacknowledged."""
    small = await connect(arena.settings.model_copy(update={"decisions_max_bytes": 15_000}))
    await small.broker.stop()
    worker = await arena.start("scheduler", policy="greedy")
    await arena.bus.publish(
        "decisions.x.y", b"x" * 14_000, stream=subjects.DECISIONS, message_id="ballast"
    )
    run = await arena.run(schedulers=["greedy"])
    await send_tasks(arena, run, 1, each=40)
    await eventually(
        lambda: worker.registry.get_sample_value(
            "hybrid_stream_full_total", {"stream": subjects.DECISIONS}
        ),
        accept=lambda full: (full or 0) >= 3,
    )
    assert await consumer(arena, "greedy") == (1, 0)
    await arena.jetstream.purge_stream(subjects.DECISIONS)
    await eventually(lambda: consumer(arena, "greedy"), equals=(0, 1))
    assert len(await decisions(arena, run, "greedy")) == 1


INVALID = {
    "raises": ("raise RuntimeError('on fire')", "on fire"),
    "nothing": ("return None", "AttributeError"),
    "short": ("return Decisions(np.zeros(len(tasks) - 1))", "shape (9,) for 10 tasks"),
    "too_much": ("return Decisions(np.full(len(tasks), 1.5))", "must be 0..1, got 1.5"),
    "nan": ("return Decisions(np.full(len(tasks), np.nan))", "must be 0..1, got nan"),
    "no_gpu": (
        "return Decisions(np.ones(len(tasks)), device=np.full(len(tasks), 4))",
        "device must be the number of an accelerator (0..3)",
    ),
    "odd_gpus": (
        "return Decisions(np.ones(len(tasks)), device=np.zeros(3))",
        "device has shape (3,)",
    ),
}


async def test_a_failing_policy_is_reported_and_does_not_affect_the_others(
    arena: Arena, tmp_path: Path
) -> None:
    for name, (body, _) in INVALID.items():
        await arena.start("scheduler", policy=policy_file(tmp_path, name, body))
    await arena.schedulers("greedy")
    run = await arena.run(schedulers=["greedy", *INVALID])
    await send_tasks(arena, run, 2)
    await decided(arena, run, "greedy", 2)
    await eventually(
        lambda: arena.events("policy_failed"), accept=lambda rows: len(rows) == len(INVALID)
    )
    events = await arena.events("policy_failed")
    for name, (_, reason) in INVALID.items():
        # One for the run, although both batches fail.
        (event,) = [event for event in events if f"{name} cannot decide batch 0: " in event]
        assert reason in event
        # To be redelivered: neither acknowledged nor rejected.
        assert (await consumer(arena, name))[1] == 0
    assert await arena.count(subjects.DECISIONS) == 2
    assert await arena.dead_letters() == []


async def test_a_fixed_policy_resumes_where_it_failed(arena: Arena, tmp_path: Path) -> None:
    """Without a generator, which would suspend it, it is tried until its worker is replaced."""
    broken = policy_file(tmp_path, "own", "raise RuntimeError('on fire')")
    worker = await arena.start("scheduler", policy=broken)
    run = await arena.run(schedulers=["own"])
    sent = await send_tasks(arena, run, 5)
    await eventually(lambda: arena.events("policy_failed"))
    await arena.stop(worker)
    fixed = policy_file(tmp_path, "own", "return Decisions(np.full(len(tasks), 0.25))")
    await arena.start("scheduler", policy=fixed)
    decided_batches = await decided(arena, run, "own", 5)
    assert [batch.envelope.batch for batch in decided_batches] == [0, 1, 2, 3, 4]
    assert rows_of(decided_batches).select(TASKS.names).equals(rows_of(sent))


async def test_a_run_that_does_not_name_the_scheduler_is_skipped(arena: Arena) -> None:
    await arena.schedulers("greedy", "oracle")
    await arena.run(schedulers=["greedy"])  # so that it pulls
    run = await arena.run(schedulers=["oracle"])
    await send_tasks(arena, run, 3)
    await decided(arena, run, "oracle", 3)
    await eventually(lambda: consumer(arena, "greedy"), equals=(0, 3))
    assert await decisions(arena, run, "greedy") == []
    assert await arena.dead_letters() == []


async def test_garbage_of_a_run_that_does_not_name_the_scheduler_is_left_to_others(
    arena: Arena,
) -> None:
    await arena.schedulers("greedy")
    await arena.run(schedulers=["greedy"])
    run = await arena.run(schedulers=["oracle"])
    await arena.publish_raw(subjects.tasks(run.run), b"garbage")
    await eventually(lambda: consumer(arena, "greedy"), equals=(0, 1))
    assert await arena.dead_letters() == []
    await arena.schedulers("oracle")
    await eventually(lambda: consumer(arena, "oracle"), equals=(0, 1))
    (letter,) = await arena.dead_letters()
    assert letter["Hybrid-Subject"] == subjects.tasks(run.run)


async def test_two_workers_share_the_batches(arena: Arena) -> None:
    workers = await arena.schedulers("greedy", "greedy")
    run = await arena.run(schedulers=["greedy"])
    sent = await send_tasks(arena, run, 60)
    decided_batches = await decided(arena, run, "greedy", 60)
    assert [batch.envelope.batch for batch in decided_batches] == list(range(60))
    assert rows_of(decided_batches).select(TASKS.names).equals(rows_of(sent))
    done = [decided_tasks(worker) for worker in workers]
    assert sum(done) == 600
    assert min(done) > 0


async def test_a_killed_worker_loses_no_task(arena: Arena, tmp_path: Path) -> None:
    """It is killed in the middle of a batch; its batches are redelivered to the next one."""
    started = tmp_path / "started"
    hanging = policy_file(
        tmp_path, "own", f"open({str(started)!r}, 'w').close(); __import__('time').sleep(60)"
    )
    worker = arena.process("scheduler", policy=hanging)
    await eventually(lambda: arena.bus.roll_call())
    run = await arena.run(schedulers=["own"])
    await send_tasks(arena, run, 6)
    await eventually(lambda: started.exists())
    worker.kill()
    worker.wait(60)
    unacknowledged, floor = await consumer(arena, "own")
    assert unacknowledged > 0
    assert floor == 0
    working = policy_file(tmp_path, "own", "return Decisions(np.zeros(len(tasks)))")
    await arena.start("scheduler", policy=working)
    decided_batches = await decided(arena, run, "own", 6)
    assert [batch.envelope.batch for batch in decided_batches] == list(range(6))


async def test_a_batch_that_is_delivered_twice_is_decided_once(arena: Arena) -> None:
    """As when a worker dies after it has published and before it acknowledges."""
    (worker,) = await arena.schedulers("greedy")
    run = await arena.run(schedulers=["greedy"])
    await send_tasks(arena, run, 3)
    await decided(arena, run, "greedy", 3)
    await arena.stop(worker)
    # A new consumer has no acknowledgements: everything is delivered again.
    await arena.jetstream.delete_consumer(subjects.TASKS, subjects.scheduler_durable("greedy"))
    (again,) = await arena.schedulers("greedy")
    await eventually(lambda: decided_tasks(again) == 30)
    assert len(await decisions(arena, run, "greedy")) == 3


async def test_tasks_of_an_unknown_run_become_one_dead_letter(arena: Arena) -> None:
    await arena.schedulers("greedy", "oracle")
    run = await arena.run(schedulers=["greedy", "oracle"])
    tasks, cursor = generate(run.spec, Cursor(), 5)
    stray = Position().next_message("unknown", tasks, cursor)
    assert stray.rows.equals(task_rows(tasks))
    await arena.bus.publish_batch(stray)
    for name in ("greedy", "oracle"):
        await eventually(lambda name=name: consumer(arena, name), equals=(0, 1))
    (letter,) = await arena.dead_letters()
    assert letter["Hybrid-Reason"] == "no run 'unknown'"


async def test_a_worker_that_starts_late_decides_all_batches(arena: Arena) -> None:
    run = await arena.run(schedulers=["greedy"])
    await send_tasks(arena, run, 4)
    await arena.schedulers("greedy")
    decided_batches: list[Batch] = await decided(arena, run, "greedy", 4)
    assert [batch.envelope.batch for batch in decided_batches] == [0, 1, 2, 3]
    assert await unchanged(lambda: arena.count(subjects.DECISIONS)) == 4


async def test_a_worker_pulls_no_tasks_while_only_other_schedulers_have_runs(arena: Arena) -> None:
    await arena.schedulers("greedy", "cpu_only")

    async def waiting(name: str) -> int:
        durable = subjects.scheduler_durable(name)
        info = await arena.jetstream.consumer_info(subjects.TASKS, durable)
        return info.num_waiting or 0

    await eventually(lambda: waiting("cpu_only"), accept=lambda pulls: pulls > 0)
    other = await arena.run(schedulers=["greedy"])
    await eventually(lambda: waiting("cpu_only"), equals=0)
    await send_tasks(arena, other, 3)
    # Its own run, later: what it did not pull is skipped.
    own = await arena.run(schedulers=["greedy", "cpu_only"])
    await send_tasks(arena, own, 2)
    assert len(await decided(arena, own, "cpu_only", 2)) == 2
    assert len(await decided(arena, other, "greedy", 3)) == 3
    assert await decisions(arena, other, "cpu_only") == []
    assert await arena.dead_letters() == []
