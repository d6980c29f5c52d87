"""The position of a run's task stream, read from its last message, and the message after it.

The generator and the gateway (for submitted tasks) both continue the stream from the position that
they read; the compare-and-set lets one of them publish. A run whose tasks are all submitted ends
when its last message says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from shared.bus.client import Bus
from shared.domain.tasks import Tasks
from shared.domain.workload import Cursor
from shared.errors import Unreadable
from shared.messages import subjects
from shared.messages.batches import Batch, task_rows
from shared.messages.envelope import INT64_LIMIT, Envelope
from shared.messages.runs import Fork
from shared.messages.standing import standing_of


@dataclass(frozen=True, slots=True)
class Position:
    """What the next message of a run's task stream continues from."""

    cursor: Cursor = field(default_factory=Cursor)
    next_batch: int = 0
    sequence: int = 0  # of the last message, in TASKS; 0 for none

    def next_message(self, run: str, tasks: Tasks, cursor: Cursor) -> Batch:
        state = {"cursor": asdict(cursor)}
        envelope = Envelope("tasks", run, self.next_batch, time.time(), state=state)
        return Batch(envelope, task_rows(tasks))

    def after(self, batch: Batch, cursor: Cursor, sequence: int) -> Position:
        return Position(cursor, batch.envelope.batch + 1, sequence)


async def load_position(bus: Bus, run: str, fork: Fork | None = None) -> Position:
    last = await bus.last_message(subjects.tasks(run), subjects.TASKS, cursor_of)
    if last is None:
        return Position() if fork is None else Position(fork.cursor, fork.next_batch)
    return Position(cursor_of(last.envelope), last.envelope.batch + 1, last.sequence)


def cursor_of(envelope: Envelope) -> Cursor:
    """The cursor after this batch of tasks."""
    try:
        fields = (envelope.state or {})["cursor"]
        cursor = Cursor(
            generated=int(fields["generated"]),
            next_task=int(fields["next_task"]),
            clock=float(fields["clock"]),
            # Missing in messages of older versions:
            ended=bool(fields.get("ended", False)),
            operational=float(fields.get("operational", 0.0)),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Unreadable(f"tasks without a cursor: {error!r}") from None
    in_range = 0 <= cursor.generated <= cursor.next_task < INT64_LIMIT
    if not (in_range and 0 <= cursor.clock < math.inf and 0 <= cursor.operational < math.inf):
        raise Unreadable("tasks with a cursor that is out of range")
    return cursor


# By stream: reads the state that the last message of a subject must have to continue from it.
STATE_READERS: dict[str, Callable[[Envelope], object]] = {
    subjects.TASKS: cursor_of,
    subjects.RESULTS: standing_of,
}
