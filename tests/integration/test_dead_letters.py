"""Garbage on every subject of the bus while a run goes on: it becomes dead letters, no more."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa

from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions
from shared.domain.workload import Cursor, generate
from shared.messages import batches, subjects
from shared.messages.batches import Batch
from shared.messages.columns import RESULT
from shared.messages.envelope import Envelope
from shared.messages.runs import RunRecord
from tests.counting import COUNTED, once
from tests.integration.arena import Arena, eventually

SCHEDULERS = ("greedy", "oracle")


def a_batch(kind: str, run: RunRecord, scheduler: str) -> Batch:
    """A valid message of a batch that was processed long ago."""
    tasks, _ = generate(run.spec, Cursor(), 5)
    rows = batches.task_rows(tasks)
    decisions = Decisions(gpu_fraction=tasks.compute_intensity)
    if kind != "tasks":
        rows = batches.decision_rows(rows, tasks, decisions, RunSpec().platform)
    if kind == "results":
        zeros = {column.name: np.zeros(5) for column in RESULT if column.left_out is None}
        rows = batches.result_rows(rows, zeros)
    name = scheduler if kind != "tasks" else ""
    return Batch(Envelope(kind, run.run, 0, 1e9, name, state={}), rows)


def with_nan(batch: Batch) -> Batch:
    index = batch.rows.schema.get_field_index("size")
    column = pa.array([1.0, 2.0, float("nan"), 4.0, 5.0])
    return Batch(
        batch.envelope, batch.rows.set_column(index, batch.rows.schema.field("size"), column)
    )


def encoded(batch: Batch) -> bytes:
    return batches.encode(batch.envelope, batch.rows)


def broken(batch: Batch) -> dict[str, bytes]:
    """Every way a message of a subject can be unreadable."""
    whole = encoded(batch)
    foreign = pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", "y"]})
    without = batch.rows.drop_columns(["memory_required"])
    text = batch.rows.schema.get_field_index("size")
    wrong_type = batch.rows.set_column(text, "size", pa.array(["?"] * 5))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, foreign.schema) as writer:
        writer.write_batch(foreign)
    return {
        "nothing": b"",
        "bytes": bytes(range(256)) * 3,
        "text": b'{"json": true}',
        "cut in the schema": whole[:100],
        "cut in the rows": whole[: len(whole) * 3 // 4],
        "foreign": bytes(sink.getvalue()),
        "column missing": batches.encode(batch.envelope, without),
        "wrong type": batches.encode(batch.envelope, wrong_type),
        "nan": encoded(with_nan(batch)),
        "of another run": encoded(Batch(replace(batch.envelope, run="unknown"), batch.rows)),
        "negative batch": encoded(Batch(replace(batch.envelope, batch=-1), batch.rows)),
        "beyond counting": encoded(Batch(replace(batch.envelope, batch=10**30), batch.rows)),
        "no rows": batches.encode(batch.envelope, batch.rows.slice(0, 0)),
    }


def all_garbage(run: RunRecord) -> list[tuple[str, bytes]]:
    tasks = a_batch("tasks", run, "")
    found = []
    for subject, batch in {
        subjects.tasks(run.run): tasks,
        "tasks.unknown": Batch(replace(tasks.envelope, run="Unknown Run"), tasks.rows),
        subjects.decisions(run.run, "greedy"): a_batch("decisions", run, "greedy"),
        "decisions.unknown.greedy": a_batch("decisions", run, "greedy"),
        "decisions.unknown.unknown": a_batch("decisions", run, "unknown"),
        subjects.results(run.run, "oracle"): a_batch("results", run, "oracle"),
        "results.unknown.unknown": a_batch("results", run, "unknown"),
    }.items():
        found += [(subject, body) for body in broken(batch).values()]
    bodies = [b"", b"\x00\xff", b"[]", b'{"kind": "x"}', b'{"at": NaN}', b"[" * 100_000]
    found += [("events.x", body) for body in bodies]
    # The bucket keeps one value a key.
    found += [(f"$KV.runs.x{place}", body) for place, body in enumerate(bodies)]
    return found


async def test_garbage_on_every_subject_becomes_one_dead_letter_each_and_the_run_completes(
    arena: Arena,
) -> None:
    await arena.schedulers(*SCHEDULERS)
    for name in ("simulator", "recorder", "generator"):
        await arena.start(name)
    run = await arena.run(schedulers=list(SCHEDULERS), tasks=3000, pace=1000)
    await eventually(lambda: arena.tasks_sent(run), accept=lambda sent: 100 < sent < 2900)
    garbage = all_garbage(run)
    places = Counter[str]()
    for subject, body in garbage:
        await arena.publish_raw(subject, body)
        places[subject] += 1
    for body in (b"", b"garbage", encoded(a_batch("tasks", run, ""))):
        await arena.publish_raw("rejected.x", body)

    await arena.completed(run)
    await eventually(
        lambda: arena.count(subjects.REJECTED), accept=lambda value: value >= len(garbage) + 3
    )
    letters = await arena.messages(subjects.REJECTED)
    ours = [letter for letter in letters if letter.subject != "rejected.x"]
    assert len(letters) - len(ours) == 3
    origins = Counter(
        (letter.headers["Hybrid-Stream"], letter.headers["Hybrid-Sequence"]) for letter in ours
    )
    assert set(origins.values()) == {1}
    assert Counter(letter.headers["Hybrid-Subject"] for letter in ours) == places
    assert Counter(letter.data for letter in ours) == Counter(body for _, body in garbage)
    assert all(letter.headers["Hybrid-Reason"] for letter in ours)
    assert len(await arena.events("rejected")) == len(garbage)

    assert arena.store.query(COUNTED.format(run=run.run)) == once(3000, SCHEDULERS)
    expected, _ = generate(run.spec, Cursor(), 3000)
    sizes = arena.store.query("SELECT size FROM tasks FINAL ORDER BY task_id")
    assert [row["size"] for row in sizes] == expected.size.tolist()


async def test_dead_letters_name_the_reason(arena: Arena) -> None:
    await arena.schedulers("greedy")
    run = await arena.run(schedulers=["greedy"])
    subject = subjects.tasks(run.run)
    cases = broken(a_batch("tasks", run, ""))
    for body in cases.values():
        await arena.publish_raw(subject, body)
    await eventually(lambda: arena.count(subjects.REJECTED), equals=len(cases))
    letters = await arena.messages(subjects.REJECTED)
    reasons = {letter.data: letter.headers["Hybrid-Reason"] for letter in letters}
    found = {name: reasons[body] for name, body in cases.items()}
    for name in ("nothing", "bytes", "text", "cut in the schema", "cut in the rows"):
        assert found.pop(name).startswith("not an Arrow message: ")
    assert found == {
        "foreign": "no envelope in the schema's metadata",
        "column missing": "columns are missing: memory_required",
        "wrong type": "column size is string, expected double",
        "nan": "size must be above 0, at most 1e+09, got nan in row 2",
        "of another run": "a message that belongs on tasks.unknown",
        "negative batch": f"the batch number is not one of 0..{2**63 - 1}",
        "beyond counting": f"the batch number is not one of 0..{2**63 - 1}",
        "no rows": "a batch without rows",
    }


async def test_an_unreadable_record_stops_only_its_own_run(arena: Arena) -> None:
    await arena.schedulers("greedy")
    for name in ("simulator", "recorder", "generator"):
        await arena.start(name)
    broken = await arena.run(schedulers=["greedy"], tasks=200, pace=400)
    sound = await arena.run(schedulers=["greedy"], tasks=400, pace=400)
    subject = subjects.tasks(broken.run)

    async def all_sent() -> bool:
        return await arena.tasks_sent(broken) == 200

    async def known_to_all() -> bool:
        found = "SELECT count() AS stored FROM scheduler_results WHERE run = {run:String}"
        return bool(arena.store.query(found, {"run": broken.run})[0]["stored"])

    await eventually(all_sent)
    await eventually(known_to_all)
    await arena.publish_raw(f"$KV.runs.{broken.run}", b"garbage")
    await arena.completed(sound)
    after = await arena.run(schedulers=["greedy"], tasks=100)
    await arena.completed(after)
    await eventually(
        lambda: arena.count_of(subjects.TASKS, subject), accept=lambda value: value <= 1
    )
    (letter,) = await arena.dead_letters()
    assert letter["Hybrid-Subject"] == f"$KV.runs.{broken.run}"


async def test_a_message_that_looks_like_a_status_of_the_server_stops_no_reader(
    arena: Arena,
) -> None:
    """nats-py would take it for the answer to a fetch, and FastStream would stop reading."""
    await arena.schedulers("greedy")
    for status in ("404", "409", "503"):
        headers = {"Status": status, "Description": "no"}
        await arena.jetstream.publish("tasks.x", b"garbage", headers=headers)
        await arena.jetstream.publish("tasks.x", b"", headers=headers)
    await arena.publish_raw("tasks.x", b"the last")
    await eventually(lambda: arena.count(subjects.REJECTED), equals=7)
