"""The cursor of a task stream travels in its messages."""

from __future__ import annotations

from typing import Any

import pytest

from shared.bus.task_stream import Position, cursor_of
from shared.domain.spec import RunSpec
from shared.domain.workload import Cursor, generate
from shared.errors import Unreadable
from shared.messages.batches import decode, encode
from shared.messages.envelope import Envelope

DAY = {"kind": "diurnal", "period_s": 10, "profile": [1, 2, 0.3]}


def envelope(**cursor: Any) -> Envelope:
    return Envelope("tasks", "run", 0, 0.0, state={"cursor": cursor})


def test_a_stream_continues_from_a_message_bit_for_bit() -> None:
    spec = RunSpec.parse({"workload": {"arrivals": DAY}})
    tasks, cursor = generate(spec, Cursor(), 1000)
    batch = Position().next_message("run", tasks, cursor)
    received = decode(encode(batch.envelope, batch.rows), "tasks.run")
    assert cursor_of(received.envelope) == cursor
    rest, _ = generate(spec, cursor_of(received.envelope), 500)
    whole, _ = generate(spec, Cursor(), 1500)
    assert rest.arrival_time.tobytes() == whole.arrival_time[1000:].tobytes()


def test_a_cursor_of_an_older_version_is_readable() -> None:
    old = envelope(generated=5, next_task=6, clock=0.5)
    assert cursor_of(old) == Cursor(generated=5, next_task=6, clock=0.5)


@pytest.mark.parametrize("operational", [-1.0, float("inf"), float("nan"), "late", None])
def test_a_cursor_with_an_impossible_time_is_refused(operational: Any) -> None:
    with pytest.raises(Unreadable):
        cursor_of(envelope(generated=5, next_task=6, clock=0.5, operational=operational))
