"""Events between two updates of a live feed. A client gets a few messages, however many there are.

Repeated events are one message with a count. Groups that do not fit now are sent later; if there
are too many, the oldest ones are dropped. The store still has all events.
"""

from __future__ import annotations

from shared.messages.events import Event
from shared.runtime.bounded_dict import BoundedDict

KEPT_GROUPS = 100


class PendingEvents:
    def __init__(self) -> None:
        self._groups: BoundedDict[str, tuple[Event, int]] = BoundedDict(KEPT_GROUPS)

    def add(self, event: Event) -> None:
        _, count = self._groups.get(event.group, (event, 0))
        self._groups[event.group] = event, count + 1

    def take(self, most: int) -> list[tuple[Event, int]]:
        """The oldest groups, each with its newest event and the number of its events."""
        return [self._groups.popitem(last=False)[1] for _ in range(min(most, len(self._groups)))]
