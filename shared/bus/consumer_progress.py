"""How far the consumers of a run's tasks have come, as sequences in TASKS."""

from __future__ import annotations

from nats.js.api import ConsumerInfo

from shared.bus.client import Bus
from shared.messages import subjects
from shared.messages.execution import executed_of
from shared.messages.runs import RunRecord


def task_durable(record: RunRecord, scheduler: str) -> str:
    """The consumer that delivers this run's tasks to the scheduler."""
    if scheduler in record.resumed:
        return subjects.resumed_durable(scheduler, record.run)
    return subjects.scheduler_durable(scheduler)


def ack_floor(info: ConsumerInfo) -> int:
    """The stream sequence up to which every message is acknowledged."""
    return (info.ack_floor.stream_seq if info.ack_floor else 0) or 0


def decided_up_to(record: RunRecord, scheduler: str, consumers: dict[str, ConsumerInfo]) -> int:
    """The TASKS sequence up to which the scheduler has decided every batch of the run."""
    info = consumers.get(task_durable(record, scheduler))
    retried = record.resumed.get(scheduler)
    before = retried.sequence - 1 if retried else 0
    return max(before, ack_floor(info) if info else 0)


async def executed_up_to(bus: Bus, run: str, scheduler: str) -> int:
    """The TASKS sequence up to which the scheduler has results for every batch of a real run."""
    subject = subjects.results(run, scheduler)
    last = await bus.last_message(subject, subjects.RESULTS, executed_of, delete_unreadable=False)
    return 0 if last is None else executed_of(last.envelope).task_sequence
