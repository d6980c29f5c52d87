"""Every error that is ours, as one tree.

ArenaError
├── SpecError          a RunSpec that cannot be run; says which field and what is allowed
├── Unreadable         a message that will never be understood: goes to the dead letters
│   ├── ModelRefused   a model that is not what its manifest says
│   └── TooNew         a message that a newer version of the program wrote
├── Conflict           another instance advanced the sequence first: reload and go on
├── NotFound           a run or task that does not exist
├── NotAllowed         a run in this state cannot do that
└── Unavailable        a part of the arena does not answer; trying again may help
"""


class ArenaError(Exception):
    """Base of all errors a caller may want to catch."""


class SpecError(ArenaError):
    """A run spec that cannot be run. `problems` has one line per field."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Unreadable(ArenaError):
    """A message that no retry will make readable."""


class ModelRefused(Unreadable):
    """A model that is not what its manifest says, or that cannot be read. `which` is the same
    for the same bytes."""

    def __init__(self, reason: str, which: str = "") -> None:
        super().__init__(reason)
        self.which = which


class TooNew(Unreadable):
    """A message that a newer version of the program wrote."""


class Conflict(ArenaError):
    """Somebody else wrote the next message of this sequence."""


class NotFound(ArenaError):
    """No such run or task."""


class NotAllowed(ArenaError):
    """The run's state does not allow this."""


class Unavailable(ArenaError):
    """A part of the arena does not answer."""
