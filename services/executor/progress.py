"""How far a scheduler is in a real run, read from the bus: an executor stores nothing itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nats.js.errors import NotFoundError

from shared.bus.client import Bus
from shared.domain.spec import RunSpec
from shared.messages import subjects
from shared.messages.checkpoint import Checkpoint
from shared.messages.envelope import Envelope
from shared.messages.execution import Executed, Underway, executed_of


@dataclass(slots=True)
class Progress:
    checkpoint: Checkpoint
    executed: Executed
    last_sequence: int  # in RESULTS, of the message that holds the checkpoint
    # Tasks that an executor had started when it died, with how often they were started.
    interrupted: dict[int, int] = field(default_factory=dict)

    @property
    def next_batch(self) -> int:
        return self.checkpoint.next_batch

    @property
    def next_task(self) -> int:
        return self.checkpoint.cluster.next_task

    def attempts(self, tasks: Iterable[int]) -> dict[int, int]:
        """The number of the next attempt at each task."""
        return {task: self.interrupted.get(task, 0) + 1 for task in tasks}


async def load_progress(bus: Bus, run: str, scheduler: str, spec: RunSpec) -> Progress:
    def check(envelope: Envelope) -> None:
        Checkpoint.after(spec, envelope)
        executed_of(envelope)

    last = await bus.last_message(subjects.results(run, scheduler), subjects.RESULTS, check)
    if last is None:
        progress = Progress(Checkpoint.new(spec), Executed(), 0)
    else:
        checkpoint = Checkpoint.after(spec, last.envelope)
        progress = Progress(checkpoint, executed_of(last.envelope), last.sequence)
    underway = await _underway(bus, run, scheduler)
    progress.interrupted = {
        task: attempt for task, attempt in underway.attempts.items() if task >= progress.next_task
    }
    if progress.interrupted:  # the clock also ran until the interruption
        clock = max(progress.executed.clock, underway.clock)
        progress.executed = progress.executed.model_copy(update={"clock": clock})
    return progress


async def _underway(bus: Bus, run: str, scheduler: str) -> Underway:
    try:
        message = await bus.jetstream.get_last_msg(
            subjects.EXECUTION, subjects.execution(run, scheduler)
        )
    except NotFoundError:
        return Underway()
    return Underway.model_validate_json(message.data or b"")
