"""Format versions of messages, one for each kind.

Every message carries its format version. A new field does not raise it: readers ignore fields that
they do not know, and a field that an older message lacks has a default. The version is raised when
an older program would misread the message; such a program rejects it and says why. A field of the
RunSpec that changes what a run computes is such a case.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, ValidationError

Kind = Literal["batch", "run", "event", "model"]

# batch 2: decisions name a device and a CPU; 3: and the order in which tasks are served; 4: columns
# with the usual value in all rows are left out.
# run 2: clusters of any devices, noise, measured times; 3: learning in lockstep; 4: real runs;
# 5: forks. Other runs have 4, so that services of the version before can read them.
FORMATS: dict[Kind, int] = {"batch": 4, "run": 5, "event": 1, "model": 1}
LOCKSTEP, UNFORKED = 3, 4  # of a run


def too_new(kind: Kind, number: int) -> str | None:
    """Why a message of this format cannot be read; None if it can."""
    if number <= FORMATS[kind]:
        return None
    known = FORMATS[kind]
    return f"{kind} format {number} is newer than the {known} that this version reads: upgrade it"


def problem(error: ValidationError) -> str:
    """What is wrong with a message, in one line: its format if that is too new, else the first
    problem."""
    problems = {
        ".".join(map(str, each["loc"])): str(each["msg"]).removeprefix("Value error, ")
        for each in error.errors()
    }
    if "message_format" in problems:
        return problems["message_format"]
    field, text = next(iter(problems.items()))
    return f"{field}: {text}" if field else text


def _readable(kind: Kind) -> AfterValidator:
    def check(number: int) -> int:
        if reason := too_new(kind, number):
            raise ValueError(reason)
        return number

    return AfterValidator(check)


# The field `message_format` of JSON messages; the earliest messages have none.
RunFormat = Annotated[int, _readable("run")]
EventFormat = Annotated[int, _readable("event")]
ModelFormat = Annotated[int, _readable("model")]
