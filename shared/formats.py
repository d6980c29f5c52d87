"""The formats of messages: one number for each kind, and what a reader makes of a newer one.

Every message says its format. Something new in it does not raise the number: readers ignore what
they do not know, and what an older message lacks has a default. The number is raised when an older
program would misread the message; such a program puts it aside and says why. A field of the RunSpec
that changes what a run computes is of that sort: who ignored it would compute another run.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, ValidationError

Kind = Literal["batch", "run", "event", "model"]

FORMATS: dict[Kind, int] = {"batch": 1, "run": 1, "event": 1, "model": 1}


def too_new(kind: Kind, number: int) -> str | None:
    """What is against reading a message of this format."""
    if number <= FORMATS[kind]:
        return None
    known = FORMATS[kind]
    return f"{kind} format {number} is newer than the {known} that this version reads: upgrade it"


def problem(error: ValidationError) -> str:
    """What is wrong with a message, in one line: its format, which explains the rest, or else
    the first thing."""
    problems = {
        ".".join(map(str, each["loc"])): str(each["msg"]).removeprefix("Value error, ")
        for each in error.errors()
    }
    if "message_format" in problems:
        return problems["message_format"]
    where, said = next(iter(problems.items()))
    return f"{where}: {said}" if where else said


def _readable(kind: Kind) -> AfterValidator:
    def check(number: int) -> int:
        if reason := too_new(kind, number):
            raise ValueError(reason)
        return number

    return AfterValidator(check)


# The field `message_format` of the messages in JSON; the first ones had none.
RunFormat = Annotated[int, _readable("run")]
EventFormat = Annotated[int, _readable("event")]
ModelFormat = Annotated[int, _readable("model")]
