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
from shared.bus.forks import schedulers_without_checkpoint
from shared.bus.model_registry import learners_without_model
from shared.bus.task_stream import Position, load_position
from shared.domain.learning.lockstep import left_of_segment
from shared.domain.workload import generate
from shared.errors import Conflict
from shared.messages.events import Event
from shared.messages.runs import RunRecord

# A generator on standby takes over when the position has not changed for this long.
STANDBY_SECONDS = 1.0
# How often to check for the pre-trained models, and for the checkpoints of a fork.
MODELS_POLL_SECONDS = 0.1
# Tasks of a real run are published this long before they arrive, so that all schedulers, the first
# one to run them too, find them on the bus in time.
ARRIVAL_LEAD_SECONDS = 1.0
# The most tasks that may arrive together, unless a workflow has more.
LOOK_AHEAD_TASKS = 64


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
        tick = self._bus.settings.tick.total_seconds()
        self._position = await self._load_position()
        if self._position.sequence == 0:
            await self._wait_for_checkpoints()
            await self._wait_for_models()
        if self.record.spec.real:
            await self._emit_by_arrival()
        else:
            await self._emit_by_pace(tick)
        self.emitted_all = True

    async def _emit_by_pace(self, tick: float) -> None:
        settings = self._bus.settings
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

    async def _emit_by_arrival(self) -> None:
        """Of a real run: publish a batch for each moment at which tasks arrive, a little before it.
        The clock of the arrivals stands still while the run is paused."""
        tick = self._bus.settings.tick.total_seconds()
        began = time.monotonic() - self._position.cursor.clock
        while self._remaining() > 0:
            if await self._back_pressure.free_batches(self.record) == 0:
                await asyncio.sleep(tick)
                continue
            count, arrival = self._next_arrival()
            ahead = arrival - ARRIVAL_LEAD_SECONDS - (time.monotonic() - began)
            if ahead > 0:
                await asyncio.sleep(min(ahead, 1.0))
                continue
            try:
                await self._send(count)
                self._back_pressure.published()
            except Conflict:
                await self._stand_by()
                began = time.monotonic() - self._position.cursor.clock

    def _next_arrival(self) -> tuple[int, float]:
        """How many tasks arrive together next, and when."""
        spec, cursor = self.record.spec, self._position.cursor
        most = max(spec.workload.dependencies.workflow or 0, LOOK_AHEAD_TASKS)
        tasks, _ = generate(spec, cursor, int(min(most, self._remaining())))
        together = int((tasks.arrival_time == tasks.arrival_time[0]).sum())
        return together, float(tasks.arrival_time[0])

    async def _load_position(self) -> Position:
        return await load_position(self._bus, self.record.run, self.record.fork)

    async def _wait_for_checkpoints(self) -> None:
        """Of a fork: wait until every scheduler's cluster is as it was in the parent."""
        missing = True
        while missing:
            missing = bool(await schedulers_without_checkpoint(self._bus, self.record))
            await asyncio.sleep(MODELS_POLL_SECONDS if missing else 0)

    async def _wait_for_models(self) -> None:
        """Wait for the learners to be pre-trained: in lockstep as long as it takes, else no longer
        than `pretrain_patience`."""
        run = self.record.run
        timeout = self._bus.settings.pretrain_patience.total_seconds()
        deadline = time.monotonic() + timeout
        lockstep, reported = self.record.spec.lockstep, False
        while await learners_without_model(self._bus, self.record):
            if time.monotonic() >= deadline and not reported:
                ending = "waits for them" if lockstep else "starts without them"
                note = f"no pre-trained models after {timeout:.0f} s: run {run} {ending}"
                await self._bus.publish_event(
                    Event(kind="run", service=self._bus.service, run=run, message=note),
                    message_id=f"event.run.{run}.untrained",
                )
                reported = True
            if reported and not lockstep:
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
        # Published first: a generator killed in between would never publish it.
        await self._publish_drift(position.cursor.generated, cursor.generated)
        sequence = await self._bus.publish_batch(batch, after=position.sequence)
        self._position = position.after(batch, cursor, sequence)
        self._counters.tasks.inc(count)

    async def _publish_drift(self, first: int, end: int) -> None:
        """Events for the changes of the workload within these tasks."""
        run = self.record.run
        for step in self.record.spec.workload.drift:
            if first <= step.after < end:
                note = f"run {run}: the workload is {step.preset} from task {step.after} on"
                await self._bus.publish_event(
                    Event(kind="drift", service=self._bus.service, run=run, message=note),
                    message_id=f"event.drift.{run}.{step.after}",
                )

    async def _stand_by(self) -> None:
        """Return once no other generator has published for a while, or all tasks are sent."""
        self._position = await self._load_position()
        while self._remaining() > 0:
            await asyncio.sleep(STANDBY_SECONDS)
            before = self._position.sequence
            self._position = await self._load_position()
            if self._position.sequence == before:
                return

    def _of_segment(self, count: int) -> int:
        """`count`, limited to the current segment of a run in lockstep."""
        if not self.record.in_segments:
            return count
        next_task = self._position.cursor.next_task
        return min(count, left_of_segment(next_task, self.record.spec))

    def _undivided(self, count: int) -> int:
        """`count`, or some more, so that the tasks of a workflow stay in one batch."""
        workflow = self.record.spec.workload.dependencies.workflow
        if workflow is None:
            return count
        end = self._position.cursor.generated + count
        return count + -end % workflow

    def _remaining(self) -> float:
        total = self.record.spec.tasks
        return math.inf if total is None else total - self._position.cursor.generated
