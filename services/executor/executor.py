"""Runs the tasks of real runs, one scheduler after the other, while this executor is active.

Runs take turns, too: a stretch of one, then a stretch of the next. Without a real run in the state
"running" there are no device processes, and the executor only waits.
"""

from __future__ import annotations

import asyncio
import time

from services.executor.lease import Lease
from services.executor.machine import CannotExecute, Machine
from services.executor.metrics import Metrics
from services.executor.progress import Progress, load_progress
from services.executor.stretch import Stretch
from services.executor.turns import next_turn
from shared.bus.run_changes import RunChanges
from shared.bus.service import Service
from shared.bus.task_stream import cursor_of
from shared.errors import Conflict
from shared.messages import subjects
from shared.messages.events import MESSAGE_CHARACTERS, Event
from shared.messages.runs import RunRecord, RunState
from shared.runtime.cancellation import cancel
from shared.runtime.logs import logger

# The run book is read when it changes, and this often in case a message was missed.
POLL_SECONDS = 2.0
# How often to look for new tasks of a run whose tasks so far are all done.
TASK_POLL_SECONDS = 0.05
# How often it is checked, during a stretch, whether its run is still running.
WATCH_SECONDS = 0.2
# A scheduler that did not decide in time is skipped for this long.
SKIP_SECONDS = 5.0

log = logger()


class Executor:
    def __init__(self, service: Service, machine: Machine, metrics: Metrics) -> None:
        self._service = service
        self._machine = machine
        self._metrics = metrics
        self._lease = Lease(service.bus, service.instance)
        self._served_at: dict[str, float] = {}  # by run
        self._skipped_until: dict[tuple[str, str], float] = {}  # by run and scheduler

    async def follow_runs(self) -> None:
        changes = RunChanges(self._service.bus)
        await changes.listen()
        while True:
            running = await self._running()
            if not running:
                await self.close()
                await changes.wait(POLL_SECONDS)
            elif not await self._lease.take():
                await changes.wait(POLL_SECONDS / 2)
            elif not await self._serve_one(running):
                await changes.wait(TASK_POLL_SECONDS)

    async def _running(self) -> list[RunRecord]:
        """The real runs that are running, the one that has waited longest first."""
        records = [
            record
            for record in await self._service.runs.refresh()
            if record.spec.real and record.state == RunState.RUNNING
        ]
        self._served_at = {each.run: self._served_at.get(each.run, 0.0) for each in records}
        return sorted(records, key=lambda record: self._served_at[record.run])

    async def _serve_one(self, records: list[RunRecord]) -> bool:
        """Give the machine to the next scheduler of a run; False: no run has anything to do."""
        for record in records:
            turn = await self._next_turn(record)
            if turn is not None:
                self._served_at[record.run] = time.monotonic()
                await self._give_turn(record, *turn)
                return True
        return False

    async def _next_turn(self, record: RunRecord) -> tuple[str, Progress] | None:
        bus, run, spec = self._service.bus, record.run, record.spec
        tasks = await bus.last_message(
            subjects.tasks(run), subjects.TASKS, cursor_of, delete_unreadable=False
        )
        if tasks is None:
            return None
        progress = {}
        for name in record.competing:
            if self._skipped_until.get((run, name), 0.0) > time.monotonic():
                continue
            reached = await load_progress(bus, run, name, spec)
            if reached.next_batch <= tasks.envelope.batch:
                progress[name] = reached
        if not progress:
            return None
        next_task = {name: each.next_task for name, each in progress.items()}
        chosen = next_turn(spec.schedulers, next_task, spec.execution.stretch_tasks, spec.seed)
        return chosen, progress[chosen]

    async def _give_turn(self, record: RunRecord, scheduler: str, progress: Progress) -> None:
        try:
            devices = await self._machine.open(record.spec)
        except CannotExecute as error:
            await self._refuse(record, str(error))
            return
        stretch = Stretch(
            self._service.bus,
            record.run,
            scheduler,
            record.spec,
            progress,
            devices,
            self._metrics,
        )
        running = asyncio.create_task(stretch.run())
        try:
            await self._watch(record.run, scheduler, stretch, running)
        except* Conflict:
            log.warning("another executor has published results", run=record.run)
        finally:
            if not running.done() or running.cancelled() or running.exception() is not None:
                await cancel(running)
                await self._machine.close()  # a device may still be running a part
        if stretch.unanswered:
            log.warning("a scheduler is skipped for a while", reason=stretch.unanswered)
            self._skipped_until[record.run, scheduler] = time.monotonic() + SKIP_SECONDS

    async def _watch(
        self, run: str, scheduler: str, stretch: Stretch, running: asyncio.Task[None]
    ) -> None:
        """Wait for the end of a stretch. It ends early if the run is paused or over, or if another
        executor has become the active one."""
        while not running.done():
            await asyncio.wait([running], timeout=WATCH_SECONDS)
            if self._lease.lost.is_set():
                return
            records = {record.run: record for record in await self._service.runs.refresh()}
            record = records.get(run)
            if (
                record is None
                or record.state != RunState.RUNNING
                or scheduler not in record.competing
            ):
                stretch.stop_releasing()
        await running

    async def _refuse(self, record: RunRecord, reason: str) -> None:
        """Stop a run that this machine cannot execute."""
        event = Event(
            kind="cannot_execute",
            service=self._service.name,
            run=record.run,
            message=f"run {record.run} is stopped: {reason}"[:MESSAGE_CHARACTERS],
        )
        await self._service.bus.publish_event(
            event, message_id=f"event.cannot_execute.{record.run}"
        )
        await self._service.runs.change_state(record.run, RunState.STOPPED)

    async def close(self) -> None:
        """Stop the devices, and let another executor be the active one."""
        await self._machine.close()
        await self._lease.release()
