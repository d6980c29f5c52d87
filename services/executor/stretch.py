"""One turn of a scheduler on the machine: its next tasks are run, and their results published.

The scheduler's clock runs during the stretch. Tasks are released when it reaches their arrival; at
that moment the scheduler decides where they run. Batches of results are published in order, each as
soon as all of its tasks have finished. The stretch ends when everything has finished.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from services.executor.clock import SchedulerClock
from services.executor.decisions import request_decisions
from services.executor.device_queue import Device, DeviceQueue
from services.executor.jobs import Job, Part, make_jobs
from services.executor.machine_state import observe
from services.executor.measured_results import add_results, in_task_order
from services.executor.metrics import Metrics
from services.executor.progress import Progress
from services.executor.task_feed import TaskFeed
from services.executor.turns import stretch_end
from shared.bus.client import Bus
from shared.bus.task_stream import cursor_of
from shared.domain.spec import RunSpec
from shared.errors import Unavailable
from shared.messages import batches, subjects
from shared.messages.batches import Batch
from shared.messages.execution import Executed, Underway
from shared.runtime.cancellation import cancel
from shared.runtime.logs import logger

# How often to look for tasks that are not on the bus yet, and for how long before the turn ends.
POLL_SECONDS = 0.05
TASK_WAIT_SECONDS = 2.0
# How long a request for decisions is repeated before the turn ends, and how often.
DECISION_TIMEOUT_SECONDS = 10.0
RETRY_SECONDS = 0.5
# The most tasks that are decided at once, and the most groups that are read before they arrive.
MOST_TOGETHER = 64
READ_AHEAD_GROUPS = 1000

log = logger()


@dataclass(slots=True)
class _Batch:
    """A batch of tasks of which all, or only the first ones so far, were released."""

    tasks: Batch
    task_sequence: int
    decisions: list[pa.RecordBatch] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        complete = len(self.jobs) == self.tasks.rows.num_rows
        return complete and all(job.finish is not None for job in self.jobs)


@dataclass(frozen=True, slots=True)
class _Group:
    """Tasks of a batch that arrive at the same moment."""

    batch: _Batch
    rows: pa.RecordBatch

    @property
    def arrival(self) -> float:
        return float(batches.column(self.rows, "arrival_time")[0])


class Stretch:
    def __init__(
        self,
        bus: Bus,
        run: str,
        scheduler: str,
        spec: RunSpec,
        progress: Progress,
        devices: Sequence[Device],
        metrics: Metrics,
    ) -> None:
        self._bus, self._run, self._scheduler, self._spec = bus, run, scheduler, spec
        self._progress = progress
        self._metrics = metrics
        self._overlapped = spec.physics.split == "overlapped"
        self._queues = [DeviceQueue(device, self._on_part_end) for device in devices]
        self._idle_since = list(progress.checkpoint.cluster.free)
        self._feed = TaskFeed(bus, run, progress.executed.task_sequence, progress.next_batch)
        self._end = stretch_end(progress.next_task, spec.execution.stretch_tasks)
        self._upcoming: deque[_Group] = deque()
        self._read_all = False
        self._unfinished: OrderedDict[int, Job] = OrderedDict()
        self._batches: OrderedDict[int, _Batch] = OrderedDict()  # not published, by number
        self._changed = asyncio.Event()  # a job has finished, or the last one is released
        self._stopping = asyncio.Event()
        self._all_released = False
        self._started = 0  # jobs
        self.unanswered = ""  # why the scheduler did not decide in time
        self._clock = SchedulerClock(progress.executed.clock)

    def stop_releasing(self) -> None:
        """The run is paused or over, or the scheduler is suspended: only finish what has begun."""
        self._stopping.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            background = [group.create_task(queue.serve()) for queue in self._queues]
            background.append(group.create_task(self._read_ahead()))
            try:
                await self._warm_up()
                self._clock = SchedulerClock(self._progress.executed.clock)
                publishing = group.create_task(self._publish_in_order())
                background.append(publishing)
                await self._release()
                self._all_released = True
                self._changed.set()
                await publishing
            finally:
                # Also after an error: the group would cancel once, which can be lost.
                await cancel(*background)

    async def _warm_up(self) -> None:
        """Request a decision that is not used: a worker that was idle during the turns of others
        takes longer for its first answer, and that is not the scheduler's fault."""
        group = await self._next_group()
        if group is not None:
            tasks = replace(group.batch.tasks, rows=group.rows)
            with suppress(Unavailable):
                await request_decisions(
                    self._bus, self._scheduler, tasks, self._observe(group.rows), self._spec
                )

    async def _read_ahead(self) -> None:
        """Read the stretch's tasks, in groups that arrive together."""
        while not self._read_all:
            tasks = await self._feed.next() if len(self._upcoming) < READ_AHEAD_GROUPS else None
            if tasks is None:
                await asyncio.sleep(POLL_SECONDS)
                continue
            batch = _Batch(tasks, self._feed.sequence)
            self._upcoming += [_Group(batch, rows) for rows in _by_arrival(tasks.rows)]
            cursor = cursor_of(tasks.envelope)
            generated_all = self._spec.tasks is not None and cursor.generated >= self._spec.tasks
            self._read_all = cursor.next_task >= self._end or cursor.ended or generated_all

    async def _release(self) -> None:
        """Release each group when the clock reaches its arrival. Groups that arrive while others
        are being decided are decided together."""
        while (first := await self._next_group()) is not None:
            # A batch that has begun is released completely, since it is published as a whole.
            if not await self._reach(first.arrival, must_release=bool(first.batch.jobs)):
                return
            groups = self._take_arrived()
            decisions = await self._decide(groups)
            if decisions is None:
                return
            for group in groups:
                self._start(group.batch, decisions.slice(0, group.rows.num_rows))
                decisions = decisions.slice(group.rows.num_rows)

    async def _next_group(self) -> _Group | None:
        """None: the stretch has no further group, is stopped, or has waited long enough."""
        deadline = time.monotonic() + TASK_WAIT_SECONDS
        while not self._upcoming:
            waited = time.monotonic() > deadline and not self._unfinished
            if self._read_all or waited or self._stopping.is_set():
                return None
            await asyncio.sleep(POLL_SECONDS / 5)
        return self._upcoming[0]

    def _take_arrived(self) -> list[_Group]:
        """The first group, and those behind it that have arrived by now."""
        groups, now = [self._upcoming.popleft()], self._clock.now()
        count = groups[0].rows.num_rows
        while self._upcoming and self._upcoming[0].arrival <= now:
            count += self._upcoming[0].rows.num_rows
            if count > MOST_TOGETHER:
                break
            groups.append(self._upcoming.popleft())
        return groups

    async def _reach(self, arrival: float, must_release: bool) -> bool:
        """Wait until the clock reaches an arrival; False: the stretch was stopped before. With
        `must_release` a stop is ignored."""
        while (ahead := arrival - self._clock.now()) > 0:
            if must_release:
                await asyncio.sleep(ahead)
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), ahead)
                return False
        return must_release or not self._stopping.is_set()

    async def _decide(self, groups: Sequence[_Group]) -> pa.RecordBatch | None:
        """Request decisions until the scheduler answers; None: no answer in time, or the stretch
        is stopped. At the same time it is stored that these tasks are about to start."""
        rows = batches.join([group.rows for group in groups], "tasks")
        tasks = replace(groups[0].batch.tasks, rows=rows)
        stored = asyncio.create_task(self._store_underway(rows))
        deadline = time.monotonic() + DECISION_TIMEOUT_SECONDS
        try:
            while True:
                try:
                    return await request_decisions(
                        self._bus, self._scheduler, tasks, self._observe(rows), self._spec
                    )
                except Unavailable as error:
                    if self._stopping.is_set() or time.monotonic() > deadline:
                        self.unanswered = str(error)
                        return None
                    log.info("requesting decisions again", run=self._run, error=str(error))
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            await stored

    def _observe(self, rows: pa.RecordBatch) -> dict[str, Any]:
        first = int(batches.column(rows, "task_id")[0])
        return observe(
            self._queues,
            self._unfinished,
            self._idle_since,
            self._clock,
            first,
            self._overlapped,
        )

    async def _store_underway(self, rows: pa.RecordBatch) -> None:
        started = [job.task_id for batch in self._batches.values() for job in batch.jobs]
        tasks = [*started, *batches.column(rows, "task_id").tolist()]
        underway = Underway(clock=self._clock.now(), attempts=self._progress.attempts(tasks))
        subject = subjects.execution(self._run, self._scheduler)
        await self._bus.publish(
            subject,
            underway.model_dump_json().encode(),
            stream=subjects.EXECUTION,
            message_id=f"{subject}.{tasks[-1]}.{underway.clock}",
        )

    def _start(self, batch: _Batch, decisions: pa.RecordBatch) -> None:
        self._batches[batch.tasks.envelope.batch] = batch
        batch.decisions.append(decisions)
        attempts = self._progress.attempts(batches.column(decisions, "task_id").tolist())
        for job in make_jobs(decisions, self._spec, attempts, self._started):
            self._started += 1
            batch.jobs.append(job)
            job.waits_for &= self._unfinished.keys()
            self._unfinished[job.task_id] = job
            if not job.waits_for:
                self._begin(job)

    def _begin(self, job: Job) -> None:
        """Queue the parts of a job whose parents have finished; in `serial`, only the first."""
        parts = job.parts if self._overlapped else job.parts[:1]
        for part in parts:
            self._queues[part.device].add(part)
        if not parts:
            self._finish(job)

    def _on_part_end(self, part: Part) -> None:
        assert part.measured is not None
        self._idle_since[part.device] = self._clock.at(part.measured.ended)
        job = self._unfinished[part.task_id]
        if part.measured.failure is not None:
            job.fail(part.measured.failure)
        waiting = [each for each in job.parts if each.measured is None]
        if not waiting:
            self._finish(job)
        elif not self._overlapped:
            if job.failed:  # its other part would be useless
                self._finish(job)
            else:
                self._queues[waiting[0].device].add(waiting[0])

    def _finish(self, job: Job) -> None:
        ends = [self._clock.at(part.measured.ended) for part in job.parts if part.measured]
        job.finish = max(ends, default=self._clock.now())
        del self._unfinished[job.task_id]
        for other in list(self._unfinished.values()):
            if job.task_id in other.waits_for:
                other.waits_for.remove(job.task_id)
                if not other.waits_for:
                    self._begin(other)
        self._changed.set()

    async def _publish_in_order(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._batches and (first := next(iter(self._batches.values()))).finished:
                await self._publish(first)
                del self._batches[first.tasks.envelope.batch]
            if self._all_released and not self._unfinished:
                return  # a batch that was decided only in part runs again in the next turn

    async def _publish(self, batch: _Batch) -> None:
        progress, jobs = self._progress, in_task_order(batch.jobs)
        decisions = batches.join(batch.decisions, "decisions")
        rows, checkpoint = add_results(progress.checkpoint, decisions, jobs, self._clock)
        executed = Executed(clock=self._clock.now(), task_sequence=batch.task_sequence)
        state = {**checkpoint.state(), "execution": executed.model_dump()}
        envelope = replace(
            batch.tasks.envelope, kind="results", scheduler=self._scheduler, state=state
        )
        progress.last_sequence = await self._bus.publish_batch(
            Batch(envelope, rows), after=progress.last_sequence
        )
        progress.checkpoint, progress.executed = checkpoint, executed
        self._metrics.results.labels(self._scheduler).inc(len(jobs))


def _by_arrival(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Tasks that arrive together, one group after the other."""
    arrival = batches.column(rows, "arrival_time")
    starts = [0, *(np.flatnonzero(np.diff(arrival)) + 1).tolist(), len(arrival)]
    for start, end in pairwise(starts):
        yield rows.slice(start, end - start)
