"""Workers of cluster policies on a real bus: order, turns, takeover, restarts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from nats.aio.msg import Msg

from services.scheduler.cluster_worker import ClusterCopy, place
from services.scheduler.policies.eft import EarliestFinish
from shared.bus.task_stream import load_position
from shared.domain.workload import Cursor, generate
from shared.messages import batches, subjects
from shared.messages.batches import Batch, Envelope
from shared.messages.runs import RunRecord
from tests.integration.arena import Arena, complete, eventually, rows_of
from tests.integration.test_scheduler import (
    consumer,
    decided,
    decided_tasks,
    decisions,
    send_tasks,
)

SPEC = {
    "workload": {"arrival_rate": 20, "dependencies": {"probability": 0.2}},
    "physics": {"noise": 0.3},
}

# Earliest finish, as a user would write it, with code to run before.
OWN = """
import os, time
from pathlib import Path
from services.scheduler.policy import ClusterPolicy


class Own(ClusterPolicy):
    '''Earliest finish time.'''
    name = "own"

    def prepare(self, tasks, spec):
        {prepare}

    def decide(self, tasks, cluster, spec):
        {decide}
        for task in cluster.arrivals():
            cluster.place(cluster.finish().argmin())
        return cluster.decisions()
"""


def own_policy(folder: Path, prepare: str = "pass", decide: str = "pass") -> str:
    path = folder / "own.py"
    path.write_text(OWN.format(prepare=prepare, decide=decide))
    return str(path)


def expected_rows(run: RunRecord, count: int, each: int) -> list[dict[str, list[float]]]:
    """The decisions of earliest finish on an undisturbed cluster, batch by batch."""
    copy, cursor, rows = ClusterCopy.new(run.spec), Cursor(), []
    for number in range(count):
        tasks, cursor = generate(run.spec, cursor, each)
        batch = Batch(Envelope("tasks", run.run, number, 0.0), batches.task_rows(tasks))
        decision, copy = place(batch, EarliestFinish(), copy, run.spec, None)
        rows.append(complete(decision).rows.to_pydict())
    return rows


async def test_batches_are_placed_in_order_without_waiting_for_results(arena: Arena) -> None:
    """There is no simulator: the worker's own copy is enough."""
    await arena.schedulers("eft")
    run = await arena.run(schedulers=["eft"], **SPEC)
    await send_tasks(arena, run, 20)
    found = await decided(arena, run, "eft", 20)
    assert [complete(batch).rows.to_pydict() for batch in found] == expected_rows(run, 20, 10)
    await eventually(lambda: consumer(arena, "eft"), equals=(0, 20))


async def test_a_worker_that_starts_late_takes_the_checkpoint_of_the_results(arena: Arena) -> None:
    await arena.start("simulator")
    (first,) = await arena.schedulers("eft")
    run = await arena.run(schedulers=["eft"], **SPEC)
    await send_tasks(arena, run, 5)
    await decided(arena, run, "eft", 5)
    await arena.stop(first)
    await eventually(lambda: arena.count(subjects.RESULTS), equals=5)
    await arena.schedulers("eft")
    sent = await more_tasks(arena, run, 5, start=5)
    await eventually(lambda: arena.count(subjects.RESULTS), equals=10)
    results = await arena.batches(subjects.RESULTS, ">")
    names = ("task_id", "gpu_fraction", "device", "cpu", "expected_time")
    found = rows_of(results).select(names).to_pydict()
    for name in names:
        expected = [value for rows in expected_rows(run, 10, 10) for value in rows[name]]
        assert found[name] == expected
    assert len(sent) == 5


async def more_tasks(arena: Arena, run: RunRecord, count: int, start: int) -> list[Batch]:
    """The batches after the first `start`, of ten tasks each."""
    position, sent = await load_position(arena.bus, run.run), []
    assert position.next_batch == start
    for _ in range(count):
        tasks, cursor = generate(run.spec, position.cursor, 10)
        batch = position.next_message(run.run, tasks, cursor)
        sequence = await arena.bus.publish_batch(batch, after=position.sequence)
        position = position.after(batch, cursor, sequence)
        sent.append(batch)
    return sent


async def test_three_workers_take_turns(arena: Arena) -> None:
    workers = await arena.schedulers("eft", "eft", "eft")
    run = await arena.run(schedulers=["eft"], **SPEC)
    await send_tasks(arena, run, 60)
    found = await decided(arena, run, "eft", 60)
    assert [complete(batch).rows.to_pydict() for batch in found] == expected_rows(run, 60, 10)
    done = [decided_tasks(worker) for worker in workers]
    assert sum(done) == 600
    assert min(done) > 0


async def test_a_worker_sends_its_copy_only_to_those_that_wait(arena: Arena) -> None:
    await arena.schedulers("eft")
    run = await arena.run(schedulers=["eft"], **SPEC)
    heard: list[dict[str, object]] = []

    async def on_placed(message: Msg) -> None:
        heard.append(json.loads(message.data))

    subject = subjects.placed(run.run, "eft")
    await arena.bus.listen(subject, on_placed)
    await send_tasks(arena, run, 5)
    await decided(arena, run, "eft", 5)
    assert heard == []
    await arena.bus.broadcast(subject, b'{"waits": "another worker"}')
    await eventually(lambda: [each.get("next_batch") for each in heard], equals=[None, 5])
    await more_tasks(arena, run, 1, start=5)
    await eventually(lambda: [each.get("next_batch") for each in heard], equals=[None, 5, 6])


async def test_a_batch_whose_worker_died_is_taken_over(arena: Arena, tmp_path: Path) -> None:
    """One of two workers is killed while it prepares a batch. The other one places that batch long
    before the message is redelivered."""
    started = tmp_path / "started"
    hang = (
        "if int(tasks.task_id[0]) == 0 and os.environ.get('HANG'):"
        f" Path({str(started)!r}).touch(); time.sleep(600)"
    )
    policy = own_policy(tmp_path, prepare=hang)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HANG", "1")
        victim = arena.process("scheduler", policy=policy)
    await eventually(lambda: arena.bus.roll_call())
    run = await arena.run(schedulers=["own"], **SPEC)
    await send_tasks(arena, run, 1)
    await eventually(lambda: started.exists())
    await arena.start("scheduler", policy=policy)
    await more_tasks(arena, run, 5, start=1)
    await asyncio.to_thread(victim.kill)
    found = await decided(arena, run, "own", 6)
    assert [complete(batch).rows.to_pydict() for batch in found] == expected_rows(run, 6, 10)


async def test_a_batch_that_is_delivered_again_is_decided_once(arena: Arena) -> None:
    await arena.start("simulator")
    (worker,) = await arena.schedulers("eft")
    run = await arena.run(schedulers=["eft"], **SPEC)
    await send_tasks(arena, run, 3)
    await eventually(lambda: arena.count(subjects.RESULTS), equals=3)
    await arena.stop(worker)
    await arena.jetstream.delete_consumer(subjects.TASKS, subjects.scheduler_durable("eft"))
    (again,) = await arena.schedulers("eft")
    await eventually(lambda: consumer(arena, "eft"), equals=(0, 3))
    assert decided_tasks(again) == 0
    assert await arena.count(subjects.RESULTS) == 3


async def test_a_failing_policy_is_reported_and_can_be_fixed(arena: Arena, tmp_path: Path) -> None:
    policy = own_policy(tmp_path, decide="raise RuntimeError('on fire')")
    worker = await arena.start("scheduler", policy=policy)
    run = await arena.run(schedulers=["own"], **SPEC)
    await send_tasks(arena, run, 3)
    events = await eventually(lambda: arena.events("policy_failed"))
    assert "own cannot decide batch 0: RuntimeError('on fire')" in events[0]
    assert await decisions(arena, run, "own") == []
    await arena.stop(worker)
    await arena.start("scheduler", policy=own_policy(tmp_path))
    found = await decided(arena, run, "own", 3)
    assert [complete(batch).rows.to_pydict() for batch in found] == expected_rows(run, 3, 10)
    assert await arena.dead_letters() == []


async def test_garbage_from_other_workers_changes_nothing(arena: Arena) -> None:
    await arena.schedulers("eft")
    run = await arena.run(schedulers=["eft"], **SPEC)
    await send_tasks(arena, run, 1)
    await decided(arena, run, "eft", 1)
    for body in (b"", b"{", b"[]", b'{"next_batch": 7}', b'{"next_batch": 9, "cluster": {}}'):
        await arena.bus.broadcast(subjects.placed(run.run, "eft"), body)
    await more_tasks(arena, run, 3, start=1)
    found = await decided(arena, run, "eft", 4)
    assert [complete(batch).rows.to_pydict() for batch in found] == expected_rows(run, 4, 10)


async def test_a_run_that_waits_does_not_hold_up_another_one(arena: Arena) -> None:
    """Its first batch was lost: it can never be placed."""
    await arena.schedulers("eft")
    stuck = await arena.run(schedulers=["eft"], **SPEC)
    other = await arena.run(schedulers=["eft"], **SPEC)
    tasks, _ = generate(stuck.spec, Cursor(), 10)
    envelope = Envelope("tasks", stuck.run, 4, 0.0, state={"cursor": {}})
    await arena.bus.publish_batch(Batch(envelope, batches.task_rows(tasks)))
    await send_tasks(arena, other, 3)
    found = await decided(arena, other, "eft", 3)
    assert [complete(batch).rows.to_pydict() for batch in found] == expected_rows(other, 3, 10)
    assert await decisions(arena, stuck, "eft") == []
