"""Reports schedulers of running runs that had no new results for a while though tasks wait.

No data is lost, but no other check reports it: a worker, or the simulator, may be missing.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

from shared.bus.client import Bus
from shared.bus.run_book import RunBook
from shared.bus.task_stream import load_position
from shared.errors import NotFound, Unavailable
from shared.messages import subjects
from shared.messages.events import MESSAGE_CHARACTERS, Event
from shared.messages.runs import RunRecord, RunState


@dataclass(slots=True)
class ResultProgress:
    batches: int  # with results
    since: float  # by the monotonic clock
    reported: bool = False


class StuckRuns:
    def __init__(self, bus: Bus, runs: RunBook) -> None:
        self._bus = bus
        self._runs = runs
        self._progress: dict[tuple[str, str], ResultProgress] = {}  # by run and scheduler

    async def check(self) -> None:
        records = await self._runs.refresh()
        running = [record for record in records if record.state == RunState.RUNNING]
        known = {(record.run, name) for record in running for name in record.competing}
        self._progress = {key: each for key, each in self._progress.items() if key in known}
        for record in running:
            # An unreadable record, or a newer version's messages, must not block others.
            with suppress(NotFound, Unavailable):
                await self._check_run(record)

    async def _check_run(self, record: RunRecord) -> None:
        sent = (await load_position(self._bus, record.run)).next_batch
        timeout = self._bus.settings.stuck_after.total_seconds()
        progress = {
            name: await self._progress_of(record.run, name, sent) for name in record.competing
        }
        # In a real run schedulers take turns: while one has results, the others are not stuck.
        latest = max((each.since for each in progress.values()), default=0.0)
        stuck = [
            name
            for name, each in progress.items()
            if not each.reported
            and time.monotonic() - (latest if record.spec.real else each.since) > timeout
        ]
        for name in stuck:
            progress[name].reported = True
        if stuck:
            await self._publish(record.run, stuck)

    async def _progress_of(self, run: str, scheduler: str, sent: int) -> ResultProgress:
        """Renewed when there are new results, or no tasks wait for them."""
        subject = subjects.results(run, scheduler)
        last = await self._bus.last_message(subject, subjects.RESULTS, delete_unreadable=False)
        batches = last.envelope.batch + 1 if last else 0
        before = self._progress.get((run, scheduler))
        if before is not None and before.batches == batches < sent:
            return before
        renewed = self._progress[run, scheduler] = ResultProgress(batches, time.monotonic())
        return renewed

    async def _publish(self, run: str, schedulers: list[str]) -> None:
        seconds = self._bus.settings.stuck_after.total_seconds()
        message = (
            f"run {run}: no new results of {', '.join(schedulers)} for {seconds:g} s, though tasks "
            "wait; the services that are missing are on the Log page and in `hybrid status`"
        )
        event = Event(
            kind="stuck",
            service=self._bus.service,
            run=run,
            message=message[:MESSAGE_CHARACTERS],
            data={"schedulers": schedulers},
        )
        batches = [self._progress[run, scheduler].batches for scheduler in schedulers]
        stamp = f"{run}.{schedulers[0]}.{len(schedulers)}.{max(batches)}"
        await self._bus.publish_event(event, message_id=f"event.stuck.{stamp}")
