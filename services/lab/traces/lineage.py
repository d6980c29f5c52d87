"""Which task a parent's name means, and whether it may be one: in memory that does not grow."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from services.lab.traces.report import Report
from shared.tasks import DEPENDENCY_WINDOW

# Names that are remembered: far more than a parent may lie back, so that one that is too far back
# is told apart from one that was never there.
REMEMBERED = 65_536

ITSELF = "parent dropped: the task itself"
SKIPPED = "parent dropped: its own line was skipped"
TOO_FAR = f"parent dropped: more than {DEPENDENCY_WINDOW} tasks back"
UNKNOWN = "parent dropped: no such task before it"

NO_TASK = -1


class Lineage:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._known: dict[str, int] = {}

    def resolve(
        self,
        lines: Sequence[int],
        names: Sequence[str],
        parents: Sequence[Sequence[str]],
        ids: Sequence[int],
    ) -> list[list[int]]:
        """The parents of each task as task ids, sorted; a skipped line has the id NO_TASK."""
        self._known.update(zip(names, ids, strict=True))
        found = [
            self._allowed(line, name, own, wanted) if wanted else []
            for line, name, own, wanted in zip(lines, names, ids, parents, strict=True)
            if own != NO_TASK
        ]
        if len(self._known) > 4 * REMEMBERED:
            start = len(self._known) - REMEMBERED
            self._known = dict(islice(self._known.items(), start, None))
        return found

    def _allowed(self, line: int, name: str, own: int, wanted: Sequence[str]) -> list[int]:
        allowed = set()
        for parent in dict.fromkeys(wanted):
            place = self._known.get(parent)
            if parent == name:
                problem = ITSELF
            elif place is None or place >= own:
                problem = UNKNOWN
            elif place == NO_TASK:
                problem = SKIPPED
            elif place < own - DEPENDENCY_WINDOW:
                problem = TOO_FAR
            else:
                allowed.add(place)
                continue
            self._report.adjust(line, problem, parent)
        return sorted(allowed)
