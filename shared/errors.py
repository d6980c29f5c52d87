"""Our exceptions, as one tree.

ArenaError
├── SpecError                a RunSpec that cannot be run; says which field and what is allowed
├── Unreadable               a message that no retry will make readable: becomes a dead letter
│   ├── ModelRefused         a model that does not match its manifest; workers publish an event
│   └── TooNew               a message that a newer version of the program wrote
├── Conflict                 another instance published the next message of a sequence first
├── NotFound                 a run or task that does not exist
├── NotAllowed               the run's state does not allow it
├── Unavailable              a part of the arena does not answer; a retry may help
└── StoreError               a statement that ClickHouse did not carry out (shared/store/client.py)
    ├── StoreUnavailable     it does not answer now (also Unavailable)
    ├── StatementRefused     it never will: a wrong type, an unknown column
    └── SchemaTooNew         a newer version of the program has changed the tables
"""


class ArenaError(Exception):
    """Base class."""


class SpecError(ArenaError):
    """A run spec that cannot be run. `problems` has one line per field."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Unreadable(ArenaError):
    """A message that no retry will make readable."""


class ModelRefused(Unreadable):
    """A model that does not match its manifest or cannot be read. `digest` identifies its bytes."""

    def __init__(self, reason: str, digest: str = "") -> None:
        super().__init__(reason)
        self.digest = digest


class TooNew(Unreadable):
    """A message that a newer version of the program wrote."""


class Conflict(ArenaError):
    """Another instance wrote the next message of this sequence."""


class NotFound(ArenaError):
    """No such run or task."""


class NotAllowed(ArenaError):
    """The run's state does not allow this."""


class Unavailable(ArenaError):
    """A part of the arena does not answer."""
