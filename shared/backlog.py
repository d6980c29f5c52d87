"""How far whoever feeds a run may run ahead: the generator, or the gateway for submitted tasks.

Two limits. The lead over the *fastest* scheduler, its virtual cluster included, keeps pausing quick
and memory flat, and learners from deciding long before results come back; a slow scheduler lags
alone. The fill of the streams is the hard one: before one is full, the feeder waits for the slowest
of the readers that it is kept for. And before the first task the learners are pre-trained, if the
trainer manages in time.
"""

from __future__ import annotations

import time

from nats.js import JetStreamContext

from shared import subjects
from shared.bus import Bus
from shared.models import LEARNERS
from shared.runs import RunRecord

# A stream that is filled to this share stops the feeder: there must be room for what the tasks
# already accepted will still produce.
FULL = 0.7
LOOK_AGAIN_SECONDS = 0.5
WATCHED = (subjects.TASKS, subjects.DECISIONS, subjects.RESULTS)


class Backlog:
    def __init__(self, stream: JetStreamContext, lead_batches: int) -> None:
        self._stream = stream
        self._lead_batches = lead_batches
        self._room = 0
        self._looked_at = 0.0

    async def room(self, record: RunRecord) -> int:
        """Batches that may be sent now. Asks the bus again when that many are gone."""
        now = time.monotonic()
        if self._room <= 0 or now - self._looked_at > LOOK_AGAIN_SECONDS:
            self._room = await self._look(record)
            self._looked_at = now
        return max(self._room, 0)

    def sent(self) -> None:
        self._room -= 1

    async def _look(self, record: RunRecord) -> int:
        undecided = await self._lags(subjects.TASKS)
        unpriced = await self._lags(subjects.DECISIONS)
        lags = [
            undecided[reader] + unpriced.get(subjects.simulator_durable(name), 0)
            for name in record.spec.schedulers
            if (reader := subjects.scheduler_durable(name)) in undecided
        ]
        if not lags or await self._any_stream_full():
            return 0
        return self._lead_batches - min(lags)

    async def _lags(self, stream: str) -> dict[str, int]:
        """Messages that each durable reader has still to deal with."""
        return {
            consumer.name: (consumer.num_pending or 0) + (consumer.num_ack_pending or 0)
            for consumer in await self._stream.consumers_info(stream)
        }

    async def _any_stream_full(self) -> bool:
        for name in WATCHED:
            info = await self._stream.stream_info(name)
            limit = info.config.max_bytes or -1
            if limit > 0 and info.state.bytes > FULL * limit:
                return True
        return False


async def models_missing(bus: Bus, record: RunRecord) -> bool:
    """Whether a learner of this run has still to be pre-trained."""
    spec, run = record.spec, record.run
    wanted = {subjects.model(run, name) for name in LEARNERS if name in spec.schedulers}
    if not wanted or spec.learning.pretrain_tasks == 0:
        return False
    info = await bus.stream.stream_info(subjects.MODELS, subjects_filter=subjects.model(run, "*"))
    return not wanted <= (info.state.subjects or {}).keys()
