"""How many batches of tasks may be published ahead: by the generator, or by the gateway for
submitted tasks.

There are two limits. The first is the lead over the *fastest* scheduler, simulation included: a
small lead makes pausing quick, bounds the memory, and lets learners decide soon after the results
of earlier tasks; a slow scheduler does not delay others. The second is the fill level of the
streams: before one is full, publishing waits for its slowest consumer.
"""

from __future__ import annotations

import time

from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from shared.bus.consumer_progress import task_durable
from shared.errors import Unreadable
from shared.messages import batches, subjects
from shared.messages.runs import RunRecord

# Publishing stops at this fill level: the tasks already accepted still produce messages.
FULL = 0.7
REFRESH_SECONDS = 0.5
WATCHED_STREAMS = (subjects.TASKS, subjects.DECISIONS, subjects.RESULTS)


class BackPressure:
    def __init__(self, jetstream: JetStreamContext, lead_batches: int) -> None:
        self._jetstream = jetstream
        self._lead_batches = lead_batches
        self._free = 0
        self._refreshed_at = 0.0

    async def free_batches(self, record: RunRecord) -> int:
        """Batches that may be published now."""
        now = time.monotonic()
        if self._free <= 0 or now - self._refreshed_at > REFRESH_SECONDS:
            self._free = await self._count_free(record)
            self._refreshed_at = now
        return max(self._free, 0)

    def published(self) -> None:
        self._free -= 1

    async def _count_free(self, record: RunRecord) -> int:
        if record.spec.real:
            return await self._count_free_of_executor(record)
        undecided = await self._lags(subjects.TASKS)
        unsimulated = await self._lags(subjects.DECISIONS)
        lags = [
            undecided[reader] + unsimulated.get(subjects.simulator_durable(name), 0)
            for name in record.competing
            if (reader := task_durable(record, name)) in undecided
        ]
        if not lags or await self._any_stream_full():
            return 0
        return self._lead_batches - min(lags)

    async def _count_free_of_executor(self, record: RunRecord) -> int:
        """In a real run the lead over the scheduler whose execution is farthest: enough for the
        turns of all schedulers."""
        if await self._any_stream_full():
            return 0
        sent = await self._last_batch(subjects.TASKS, subjects.tasks(record.run))
        executed = [
            await self._last_batch(subjects.RESULTS, subjects.results(record.run, name))
            for name in record.competing
        ]
        lead = self._lead_batches + 2 * record.spec.execution.stretch_tasks
        return lead - (sent - max(executed, default=-1))

    async def _last_batch(self, stream: str, subject: str) -> int:
        try:
            message = await self._jetstream.get_last_msg(stream, subject)
            return batches.peek(message.data or b"", subject).envelope.batch
        except (NotFoundError, Unreadable):  # nothing yet; garbage is removed by its publisher
            return -1

    async def _lags(self, stream: str) -> dict[str, int]:
        """Messages that each durable consumer has not acknowledged yet."""
        return {
            consumer.name: (consumer.num_pending or 0) + (consumer.num_ack_pending or 0)
            for consumer in await self._jetstream.consumers_info(stream)
        }

    async def _any_stream_full(self) -> bool:
        for name in WATCHED_STREAMS:
            info = await self._jetstream.stream_info(name)
            limit = info.config.max_bytes or -1
            if limit > 0 and info.state.bytes > FULL * limit:
                return True
        return False
