"""Where a run's stream of tasks stands, read from its last message; how the next one is made.

The generator and the gateway (tasks that people submit) both continue the stream, each from the
position it read, and the compare-and-set decides who is next. A run whose tasks are all submitted
ends when its last message says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from shared import subjects
from shared.batches import COUNTABLE, Batch, Envelope, task_rows
from shared.bus import Bus
from shared.errors import Unreadable
from shared.standing import standing_of
from shared.tasks import Tasks
from shared.workload import Cursor


@dataclass(frozen=True, slots=True)
class Position:
    cursor: Cursor = field(default_factory=Cursor)
    next_batch: int = 0
    sequence: int = 0  # of the last message, in TASKS; 0 for none

    def next_message(self, run: str, tasks: Tasks, cursor: Cursor) -> Batch:
        state = {"cursor": asdict(cursor)}
        envelope = Envelope("tasks", run, self.next_batch, time.time(), state=state)
        return Batch(envelope, task_rows(tasks))

    def after(self, batch: Batch, cursor: Cursor, sequence: int) -> Position:
        return Position(cursor, batch.envelope.batch + 1, sequence)


async def load_position(bus: Bus, run: str) -> Position:
    last = await bus.last(subjects.tasks(run), subjects.TASKS, cursor_of)
    if last is None:
        return Position()
    return Position(cursor_of(last.envelope), last.envelope.batch + 1, last.sequence)


def cursor_of(envelope: Envelope) -> Cursor:
    """Where the stream stands after these tasks."""
    try:
        said = (envelope.state or {})["cursor"]
        cursor = Cursor(
            generated=int(said["generated"]),
            next_task=int(said["next_task"]),
            clock=float(said["clock"]),
            ended=bool(said.get("ended", False)),  # messages of an older arena do not say
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Unreadable(f"tasks without a cursor: {error!r}") from None
    if not (0 <= cursor.generated <= cursor.next_task < COUNTABLE and 0 <= cursor.clock < math.inf):
        raise Unreadable("tasks with a cursor that points nowhere")
    return cursor


# What the last message of a subject must say so that its sequence can go on from it.
STATE: dict[str, Callable[[Envelope], object]] = {
    subjects.TASKS: cursor_of,
    subjects.RESULTS: standing_of,
}
