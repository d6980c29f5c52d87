"""`hybrid tail` shows any message as plain data."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from services.cli.tail import describe
from shared.domain.tasks import Tasks
from shared.messages import batches
from shared.messages.batches import Envelope


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
    row = {"size": 2.5, "compute_intensity": 0.5, "memory_required": 10.0, "arrival_time": 0.0}
    row |= {"kind": "", "divisible": True, "width": 1, "home": -1, "last_child": -1}
    assert shown == {
        "subject": "tasks.r1", "bytes": len(body), "headers": {"Nats-Msg-Id": "tasks.r1.3"},
        "run": "r1", "batch": 3, "scheduler": "", "published_at": 1.5e9,
        "state": {"cursor": {"clock": 1}}, "count": 5,
        "rows": [{"task_id": 0, **row, "dependencies": []},
                 {"task_id": 1, **row, "dependencies": [0]}],
    }  # fmt: skip
    assert json.loads(json.dumps(shown)) == shown


def test_no_rows_are_shown_with_rows_0() -> None:
    shown = describe(message("tasks.r1", tasks_body()), rows=0)
    assert (shown["count"], shown["rows"]) == (5, [])


@pytest.mark.parametrize(
    ("subject", "data", "shown"),
    [
        ("events.run", b'{"kind": "run"}', {"json": {"kind": "run"}}),
        ("rejected.recorder", b"\xff" * 1000, {"raw": repr(b"\xff" * 200)}),
    ],
)
def test_any_other_message_is_shown_as_json_or_raw(
    subject: str, data: bytes, shown: dict[str, Any]
) -> None:
    described = describe(message(subject, data), rows=3)
    assert described == {"subject": subject, "bytes": len(data), **shown}


def test_a_batch_that_cannot_be_read_is_shown_with_the_reason() -> None:
    shown = describe(message("tasks.r1", b"\xff\x00garbage"), rows=3)
    assert shown["raw"] == repr(b"\xff\x00garbage")
    assert shown["unreadable"].startswith("not an Arrow message")
    shown = describe(message("tasks.r2", tasks_body()), rows=3)
    assert shown["unreadable"] == "a message that belongs on tasks.r1"
