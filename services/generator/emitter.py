"""One run's stream of tasks. It keeps nothing that the bus does not have.

The last message on `tasks.<run>` says where the stream stands. Several generators may run: the
compare-and-set lets one advance it, and the others notice that and stand by.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from prometheus_client import Counter

from services.generator.pacer import Pacer
from shared.backlog import Backlog, models_missing
from shared.bus import Bus
from shared.errors import Conflict
from shared.events import Event
from shared.runs import RunRecord
from shared.stream import Position, load_position
from shared.workload import generate

# A generator that lost a race looks again after this; if nobody advanced the run, it takes over.
STANDBY_SECONDS = 1.0
# How often it is looked whether the pre-trained models are there.
MODELS_SECONDS = 0.1


@dataclass(slots=True)
class Counters:
    tasks: Counter
    seconds: Counter


class Emitter:
    def __init__(self, record: RunRecord, bus: Bus, backlog: Backlog, counters: Counters) -> None:
        self._record = record
        self._bus = bus
        self._backlog = backlog
        self._counters = counters
        self._position = Position()
        self.emitted_all = False

    async def emit(self) -> None:
        """Send tasks at the run's pace until it has them all; cancelled when the run pauses."""
        settings = self._bus.settings
        tick = settings.tick.total_seconds()
        await self._stand_by_while_another_leads(first=True)
        if self._position.sequence == 0:
            await self._wait_for_models()
        pacer = self._pacer()
        while not self._has_all():
            room = await self._backlog.room(self._record)
            if room == 0:
                await asyncio.sleep(tick)
                continue
            count = self._limited(pacer.due(time.monotonic()))
            if count == 0:
                await asyncio.sleep(pacer.wait(time.monotonic(), tick))
                continue
            try:
                await self._send(count)
                pacer.sent(count)
                self._backlog.sent()
                if count < settings.batch_tasks:
                    # All that was due is out. What came due while it was sent waits for the tick:
                    # many small messages cost more than few.
                    await asyncio.sleep(pacer.wait(time.monotonic(), tick))
            except Conflict:
                await self._stand_by_while_another_leads()
                pacer = self._pacer()
        self.emitted_all = True

    async def _wait_for_models(self) -> None:
        """Learners are pre-trained before the first task, if the trainer manages in time."""
        run = self._record.run
        patience = self._bus.settings.pretrain_patience.total_seconds()
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if not await models_missing(self._bus, self._record):
                return
            await asyncio.sleep(MODELS_SECONDS)
        note = f"no pre-trained models after {patience:.0f} s: run {run} starts without them"
        await self._bus.tell(
            Event(kind="run", service=self._bus.service, run=run, message=note),
            message_id=f"event.run.{run}.untrained",
        )

    def _pacer(self) -> Pacer:
        spec, settings = self._record.spec, self._bus.settings
        return Pacer(spec.pace, settings.batch_tasks, time.monotonic())

    async def _send(self, count: int) -> None:
        started = time.perf_counter()
        position = self._position
        tasks, cursor = generate(self._record.spec, position.cursor, count)
        batch = position.next_message(self._record.run, tasks, cursor)
        self._counters.seconds.inc(time.perf_counter() - started)
        sequence = await self._bus.publish_batch(batch, after=position.sequence)
        self._position = position.after(batch, cursor, sequence)
        self._counters.tasks.inc(count)

    async def _stand_by_while_another_leads(self, *, first: bool = False) -> None:
        """Return once the position is known and nobody else has moved it for a while."""
        self._position = await load_position(self._bus, self._record.run)
        while not first and not self._has_all():
            await asyncio.sleep(STANDBY_SECONDS)
            before = self._position.sequence
            self._position = await load_position(self._bus, self._record.run)
            if self._position.sequence == before:
                return

    def _limited(self, count: int) -> int:
        left = self._left()
        return count if left is None else min(count, left)

    def _left(self) -> int | None:
        total = self._record.spec.tasks
        return None if total is None else max(total - self._position.cursor.generated, 0)

    def _has_all(self) -> bool:
        return self._left() == 0
