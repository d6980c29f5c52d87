"""Which task a parent's name means, and whether it may be one: in memory that does not grow.

Line by line, so that nothing depends on the blocks that a file is read in.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from services.lab.traces.columns import Rows
from services.lab.traces.report import Report
from shared.tasks import DEPENDENCY_WINDOW

# Lines whose names are remembered: far more than a parent may lie back, so that one that is too far
# back is told apart from one that was never there.
REMEMBERED = 65_536

REPEATED = "id was there before"
ITSELF = "parent dropped: the task itself"
SKIPPED = "parent dropped: its own line was skipped"
TOO_FAR = f"parent dropped: more than {DEPENDENCY_WINDOW} tasks back"
UNKNOWN = "parent dropped: no such task before it"

NO_TASK = -1


class Lineage:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._line: dict[str, int] = {}  # by name
        self._task = array("q", [NO_TASK]) * REMEMBERED  # by line, the oldest overwritten

    def resolve(self, rows: Rows, kept: NDArray[np.bool_], first: int) -> list[list[int]]:
        """The parents of each task as task ids, sorted; the first task's own id is `first`. A line
        whose id another task has is reported and taken out of `kept`."""
        assert rows.names is not None
        assert rows.parents is not None
        found: list[list[int]] = []
        lines, sound = rows.line.tolist(), kept.tolist()
        every = zip(lines, rows.names, rows.parents, strict=True)
        for place, (line, name, wanted) in enumerate(every):
            before = self._known(name, line)
            if before is not None and before != NO_TASK:
                if sound[place]:
                    self._report.skip(line, REPEATED, name)
                    kept[place] = False
                continue
            own = NO_TASK
            if sound[place]:
                own = first + len(found)
                found.append(self._allowed(line, name, own, wanted) if wanted else [])
            if name:  # nobody can mean one without
                self._line[name] = line
                self._task[line % REMEMBERED] = own
        if len(self._line) > 2 * REMEMBERED:
            oldest = lines[-1] - REMEMBERED
            self._line = {name: at for name, at in self._line.items() if at > oldest}
        return found

    def _known(self, name: str, line: int) -> int | None:
        """The task of that name before this line, or NO_TASK if its line was skipped."""
        at = self._line.get(name)
        return None if at is None or at <= line - REMEMBERED else self._task[at % REMEMBERED]

    def _allowed(self, line: int, name: str, own: int, wanted: Sequence[str]) -> list[int]:
        allowed = set()
        for parent in dict.fromkeys(wanted):
            task = self._known(parent, line)
            if parent == name:
                problem = ITSELF
            elif task is None:
                problem = UNKNOWN
            elif task == NO_TASK:
                problem = SKIPPED
            elif task < own - DEPENDENCY_WINDOW:
                problem = TOO_FAR
            else:
                allowed.add(task)
                continue
            self._report.adjust(line, problem, parent)
        return sorted(allowed)
