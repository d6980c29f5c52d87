"""Reads a run's batches of tasks, one after the other."""

from __future__ import annotations

from nats.js.errors import NotFoundError

from shared.bus.client import Bus
from shared.errors import Unreadable
from shared.messages import batches, subjects
from shared.messages.batches import Batch
from shared.runtime.logs import logger

log = logger()


class TaskFeed:
    def __init__(self, bus: Bus, run: str, sequence: int, next_batch: int) -> None:
        """`sequence`: in TASKS, of the batch before `next_batch` or of an earlier message."""
        self._jetstream = bus.jetstream
        self._subject = subjects.tasks(run)
        self._next_batch = next_batch
        self.sequence = sequence

    async def next(self) -> Batch | None:
        """The next batch; `sequence` becomes its sequence. None: it is not on the bus yet."""
        while True:
            try:
                message = await self._jetstream.get_msg(
                    subjects.TASKS, seq=self.sequence + 1, subject=self._subject, next=True
                )
            except NotFoundError:
                return None
            self.sequence = message.seq or self.sequence + 1
            try:
                batch = batches.decode(message.data or b"", self._subject)
            except Unreadable as error:  # the recorder makes it a dead letter
                log.warning("unreadable tasks are skipped", subject=self._subject, error=str(error))
                continue
            if batch.envelope.batch == self._next_batch:
                self._next_batch += 1
                return batch
