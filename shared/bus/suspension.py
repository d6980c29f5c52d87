"""Suspends a scheduler that keeps failing in a run, so that the run goes on without it.

Workers and the trainer only request it: the generator writes the run record, since a process that
runs plug-ins must not. From then on the scheduler's consumer skips the tasks of that run. A retry
lets the scheduler take part again: a consumer of its own delivers the run's tasks from the first
one that it had not decided. Until then these tasks are kept, as long as TASKS has room.
"""

from __future__ import annotations

import time

import nats.errors
from nats.js.errors import NotFoundError

from shared.bus.client import Bus
from shared.bus.consumer_progress import decided_up_to, executed_up_to
from shared.bus.publisher import TRANSIENT_ERRORS
from shared.bus.run_book import Change, RunBook
from shared.bus.task_stream import load_position
from shared.errors import NotAllowed, NotFound, Unavailable, Unreadable
from shared.messages import batches, subjects
from shared.messages.events import MESSAGE_CHARACTERS, Event
from shared.messages.runs import Retry, RunRecord, Suspension, SuspensionRequest
from shared.runtime.logs import logger

REQUEST_SECONDS = 5.0
REASON_CHARACTERS = 1000

log = logger()


def retried_at(record: RunRecord, scheduler: str) -> float:
    """When the scheduler's last retry in this run was; 0: there was none."""
    retry = record.resumed.get(scheduler)
    return retry.at if retry else 0.0


async def request_suspension(
    bus: Bus, run: str, scheduler: str, reason: str, batch: int | None, retried_at: float
) -> bool:
    """Ask the generator; False: none answers, so the scheduler keeps trying."""
    request = SuspensionRequest(
        run=run,
        scheduler=scheduler,
        reason=reason[:REASON_CHARACTERS],
        batch=batch,
        retried_at=retried_at,
    )
    try:
        body = request.model_dump_json().encode()
        await bus.broker.request(body, subjects.SUSPEND, timeout=REQUEST_SECONDS)
    except (nats.errors.NoRespondersError, *TRANSIENT_ERRORS) as error:
        log.warning("no generator answers: not suspended", run=run, error=repr(error))
        return False
    return True


async def suspend(bus: Bus, runs: RunBook, request: SuspensionRequest) -> RunRecord:
    """A no-op if the run has ended, the scheduler does not compete in it, or the failure is from
    before its last retry: a worker may report a failure of the old code after the retry."""
    run, scheduler = request.run, request.scheduler

    def is_due(record: RunRecord) -> bool:
        current = request.retried_at in (None, retried_at(record, scheduler))
        return record.active and scheduler in record.competing and current

    record = await runs.get(run)
    if not is_due(record):
        return record
    # Read before the record is written: until then no batch is skipped.
    next_batch, next_sequence = await _first_undecided(bus, record, scheduler)
    suspension = Suspension(
        reason=request.reason,
        batch=request.batch,
        at=time.time(),
        next_batch=next_batch,
        next_sequence=next_sequence,
    )

    def suspended(current: RunRecord) -> Change:
        if not is_due(current):
            return {}
        return {"suspended": {**current.suspended, scheduler: suspension}}

    changed = await runs.change(run, suspended)
    if changed.suspended.get(scheduler) == suspension:
        where = "" if request.batch is None else f" on batch {request.batch}"
        note = f"{scheduler} is suspended in run {run}: it keeps failing{where}: {request.reason}"
        await _publish_event(bus, changed, scheduler, "suspended", note)
    return changed


async def retry(bus: Bus, runs: RunBook, run: str, scheduler: str) -> RunRecord:
    """Let a suspended scheduler take part again, from the first batch that it has not decided."""
    suspension = _suspension(await runs.get(run), scheduler)
    await _check_tasks_are_kept(bus, run, scheduler, suspension)

    def resumed(current: RunRecord) -> Change:
        last = _suspension(current, scheduler)
        retried = Retry(sequence=last.next_sequence, batch=last.batch, at=time.time())
        return {
            "suspended": _without(current.suspended, scheduler),
            "resumed": {**current.resumed, scheduler: retried},
        }

    changed = await runs.change(run, resumed)
    note = f"{scheduler} takes part in run {run} again, from batch {suspension.next_batch}"
    await _publish_event(bus, changed, scheduler, "retried", note)
    return changed


async def leave_out(bus: Bus, runs: RunBook, run: str, scheduler: str) -> RunRecord:
    """Let the run end without a suspended scheduler, for good: its tasks are not kept any more."""

    def left_out(current: RunRecord) -> Change:
        suspension = _suspension(current, scheduler)
        final = suspension.model_copy(update={"left_out": True})
        return {"suspended": {**current.suspended, scheduler: final}}

    changed = await runs.change(run, left_out)
    await _publish_event(bus, changed, scheduler, "left_out", f"{scheduler} is left out of {run}")
    return changed


def _suspension(record: RunRecord, scheduler: str) -> Suspension:
    """Return why the scheduler is suspended. Raise unless it can be retried or left out."""
    run = record.run
    if scheduler not in record.spec.schedulers:
        raise NotFound(f"{scheduler} does not take part in run {run}")
    if scheduler not in record.suspended:
        raise NotAllowed(f"{scheduler} is not suspended in run {run}")
    if not record.active:
        raise NotAllowed(f"run {run} is {record.state}: {scheduler} stays out of it")
    if record.suspended[scheduler].left_out:
        raise NotAllowed(f"{scheduler} was left out of run {run}, which is final")
    return record.suspended[scheduler]


def _without(suspended: dict[str, Suspension], scheduler: str) -> dict[str, Suspension]:
    return {name: each for name, each in suspended.items() if name != scheduler}


async def _first_undecided(bus: Bus, record: RunRecord, scheduler: str) -> tuple[int, int]:
    """The number and the sequence of the first batch that the scheduler may not have decided."""
    if record.spec.real:
        sequence = await executed_up_to(bus, record.run, scheduler) + 1
    else:
        consumers = {info.name: info for info in await bus.jetstream.consumers_info(subjects.TASKS)}
        sequence = decided_up_to(record, scheduler, consumers) + 1
    first_batch = await _batch_at(bus, record.run, sequence)
    if first_batch is None:  # it has decided all that were sent
        return (await load_position(bus, record.run)).next_batch, sequence
    return first_batch


async def _check_tasks_are_kept(bus: Bus, run: str, scheduler: str, suspension: Suspension) -> None:
    first_batch = await _batch_at(bus, run, suspension.next_sequence)
    stored = (await load_position(bus, run)).next_batch if first_batch is None else first_batch[0]
    if stored > suspension.next_batch:
        raise NotAllowed(
            f"{scheduler} cannot continue run {run}: batches {suspension.next_batch} to "
            f"{stored - 1}, which it has not decided, were deleted because the task stream was "
            "half full; leave it out, and start another run"
        )


async def _batch_at(bus: Bus, run: str, sequence: int) -> tuple[int, int] | None:
    """The number and the sequence of the run's first batch at or after a sequence in TASKS."""
    subject = subjects.tasks(run)
    try:
        message = await bus.jetstream.get_msg(
            subjects.TASKS, seq=sequence, subject=subject, next=True
        )
    except NotFoundError:
        return None
    except TRANSIENT_ERRORS as error:
        raise Unavailable(f"NATS does not answer: {error!r}") from None
    batch_sequence = message.seq or sequence
    try:
        return batches.peek(message.data or b"", subject).envelope.batch, batch_sequence
    except Unreadable:  # a worker makes it a dead letter
        return await _batch_at(bus, run, batch_sequence + 1)


async def _publish_event(
    bus: Bus, record: RunRecord, scheduler: str, kind: str, message: str
) -> None:
    event = Event(
        kind=kind,
        service=bus.service,
        run=record.run,
        message=message[:MESSAGE_CHARACTERS],
        data={"scheduler": scheduler},
    )
    stamp = f"{record.run}.{scheduler}.{record.updated_at}"
    await bus.publish_event(event, message_id=f"event.{kind}.{stamp}")
