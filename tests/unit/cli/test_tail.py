"""Any message as plain data."""

from __future__ import annotations

import json

import numpy as np
from nats.aio.client import Client
from nats.aio.msg import Msg

from services.cli.tail import describe
from shared import batches
from shared.batches import Envelope
from shared.tasks import Tasks


def message(subject: str, data: bytes, headers: dict[str, str] | None = None) -> Msg:
    return Msg(_client=Client(), subject=subject, data=data, headers=headers)


def tasks_body(count: int = 5) -> bytes:
    tasks = Tasks(
        task_id=np.arange(count),
        size=np.full(count, 2.5),
        compute_intensity=np.full(count, 0.5),
        memory_required=np.full(count, 10.0),
        arrival_time=np.zeros(count),
        parents=[[]] + [[0]] * (count - 1),
    )
    envelope = Envelope("tasks", "r1", 3, 1.5e9, state={"cursor": {"clock": 1}})
    return batches.encode(envelope, batches.task_rows(tasks))


def test_a_batch_is_shown_with_its_envelope_and_first_rows() -> None:
    body = tasks_body()
    shown = describe(message("tasks.r1", body, {"Nats-Msg-Id": "tasks.r1.3"}), rows=2)
    assert shown == {
        "subject": "tasks.r1",
        "bytes": len(body),
        "headers": {"Nats-Msg-Id": "tasks.r1.3"},
        "run": "r1",
        "batch": 3,
        "scheduler": "",
        "published_at": 1.5e9,
        "state": {"cursor": {"clock": 1}},
        "count": 5,
        "rows": [
            {
                "task_id": number,
                "size": 2.5,
                "compute_intensity": 0.5,
                "memory_required": 10.0,
                "arrival_time": 0.0,
                "dependencies": [0] if number else [],
            }
            for number in range(2)
        ],
    }
    assert json.loads(json.dumps(shown)) == shown


def test_no_rows_are_shown_when_none_are_wanted() -> None:
    shown = describe(message("tasks.r1", tasks_body()), rows=0)
    assert (shown["count"], shown["rows"]) == (5, [])


def test_json_is_shown_as_it_is() -> None:
    shown = describe(message("events.run", b'{"kind": "run"}'), rows=3)
    assert shown == {"subject": "events.run", "bytes": 15, "json": {"kind": "run"}}


def test_garbage_on_a_subject_of_ours_says_why_it_is() -> None:
    shown = describe(message("tasks.r1", b"\xff\x00garbage"), rows=3)
    assert shown["raw"] == repr(b"\xff\x00garbage")
    assert shown["unreadable"].startswith("not an Arrow message")


def test_a_batch_on_the_wrong_subject_says_where_it_belongs() -> None:
    shown = describe(message("tasks.r2", tasks_body()), rows=3)
    assert shown["unreadable"] == "a message that belongs on tasks.r1"


def test_bytes_on_any_other_subject_are_just_shown() -> None:
    shown = describe(message("rejected.recorder", b"\xff" * 1000), rows=3)
    assert shown == {"subject": "rejected.recorder", "bytes": 1000, "raw": repr(b"\xff" * 200)}
