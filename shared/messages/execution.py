"""What executors leave on the bus for themselves: who of them is active, and what is under way."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from shared.errors import Unreadable
from shared.messages.envelope import Envelope


class LeaseHolder(BaseModel):
    """The active executor, or none. It renews this; one that stops doing so is replaced."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    instance: str = ""
    renewed: int = 0


class Underway(BaseModel):
    """The tasks of a scheduler that were started and have no published results, each with the
    number of this attempt, and the scheduler's clock when the newest was started."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    clock: float = 0.0
    attempts: dict[int, int] = {}


class Executed(BaseModel):
    """In the state of each batch of results of a real run: the scheduler's clock, which runs only
    while it has the machine, and the sequence of the batch in TASKS."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    clock: float = 0.0
    task_sequence: int = 0


def executed_of(envelope: Envelope) -> Executed:
    try:
        return Executed.model_validate((envelope.state or {})["execution"])
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"results that no executor published: {error!r}") from None
