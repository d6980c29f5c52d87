"""Generates and publishes one run's tasks.

All state is on the bus: the last message on `tasks.<run>` has the position in the stream. With
several generators, the compare-and-set lets one of them publish, and the others stand by.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass

from prometheus_client import Counter

from services.generator.pacer import Pacer
from shared.bus.back_pressure import BackPressure
from shared.bus.client import Bus
from shared.bus.model_registry import models_missing
from shared.bus.task_stream import Position, load_position
from shared.domain.lockstep import left_of_segment
from shared.domain.workload import generate
from shared.errors import Conflict
from shared.messages.events import Event
from shared.messages.runs import RunRecord

# A generator on standby takes over when the position has not changed for this long.
STANDBY_SECONDS = 1.0
# How often to check for the pre-trained models.
MODELS_POLL_SECONDS = 0.1


@dataclass(slots=True)
class Counters:
    tasks: Counter
    seconds: Counter


class Emitter:
    def __init__(
        self, record: RunRecord, bus: Bus, back_pressure: BackPressure, counters: Counters
    ) -> None:
        self.record = record  # renewed while tasks are published: schedulers may be suspended
        self._bus = bus
        self._back_pressure = back_pressure
        self._counters = counters
        self._position = Position()
        self.emitted_all = False

    async def emit(self) -> None:
        """Publish tasks at the run's pace until all are sent; cancelled when the run is paused."""
        settings = self._bus.settings
        tick = settings.tick.total_seconds()
        self._position = await load_position(self._bus, self.record.run)
        if self._position.sequence == 0:
            await self._wait_for_models()
        pacer = self._pacer()
        while self._remaining() > 0:
            if await self._back_pressure.free_batches(self.record) == 0:
                await asyncio.sleep(tick)
                continue
            due = pacer.due(time.monotonic())
            if due == 0:
                await asyncio.sleep(pacer.wait(time.monotonic(), tick))
                continue
            count = int(min(self._undivided(self._of_segment(due)), self._remaining()))
            try:
                await self._send(count)
                pacer.sent(count)
                self._back_pressure.published()
                if count < min(due, settings.batch_tasks):
                    continue  # the rest of what is due belongs to the next segment
                if count < settings.batch_tasks:
                    # Everything due is sent. Wait for a tick: a few large messages cost less than
                    # many small ones.
                    await asyncio.sleep(pacer.wait(time.monotonic(), tick))
            except Conflict:
                await self._stand_by()
                pacer = self._pacer()
        self.emitted_all = True

    async def _wait_for_models(self) -> None:
        """Wait for the learners to be pre-trained: in lockstep as long as it takes, else no longer
        than `pretrain_patience`."""
        run = self.record.run
        patience = self._bus.settings.pretrain_patience.total_seconds()
        deadline = time.monotonic() + patience
        lockstep, noted = self.record.spec.lockstep, False
        while await models_missing(self._bus, self.record):
            if time.monotonic() >= deadline and not noted:
                ending = "waits for them" if lockstep else "starts without them"
                note = f"no pre-trained models after {patience:.0f} s: run {run} {ending}"
                await self._bus.publish_event(
                    Event(kind="run", service=self._bus.service, run=run, message=note),
                    message_id=f"event.run.{run}.untrained",
                )
                noted = True
            if noted and not lockstep:
                return
            await asyncio.sleep(MODELS_POLL_SECONDS)

    def _pacer(self) -> Pacer:
        spec, settings = self.record.spec, self._bus.settings
        return Pacer(spec.pace, settings.batch_tasks, time.monotonic())

    async def _send(self, count: int) -> None:
        started = time.perf_counter()
        position = self._position
        tasks, cursor = generate(self.record.spec, position.cursor, count)
        batch = position.next_message(self.record.run, tasks, cursor)
        self._counters.seconds.inc(time.perf_counter() - started)
        sequence = await self._bus.publish_batch(batch, after=position.sequence)
        self._position = position.after(batch, cursor, sequence)
        self._counters.tasks.inc(count)

    async def _stand_by(self) -> None:
        """Return once no other generator has published for a while, or all tasks are sent."""
        self._position = await load_position(self._bus, self.record.run)
        while self._remaining() > 0:
            await asyncio.sleep(STANDBY_SECONDS)
            before = self._position.sequence
            self._position = await load_position(self._bus, self.record.run)
            if self._position.sequence == before:
                return

    def _of_segment(self, count: int) -> int:
        """So many tasks, but none of the next segment of a run in lockstep."""
        if not self.record.in_segments:
            return count
        next_task = self._position.cursor.next_task
        return min(count, left_of_segment(next_task, self.record.spec))

    def _undivided(self, count: int) -> int:
        """So many tasks, or some more: those of a workflow stay in one batch."""
        workflow = self.record.spec.workload.dependencies.workflow
        if workflow is None:
            return count
        end = self._position.cursor.generated + count
        return count + -end % workflow

    def _remaining(self) -> float:
        total = self.record.spec.tasks
        return math.inf if total is None else total - self._position.cursor.generated
