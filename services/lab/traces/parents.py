"""Resolves the names of parents to task ids, in constant memory.

It works line by line, so the result does not depend on how the file is divided into blocks.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from services.lab.traces.formats.text_columns import Rows
from services.lab.traces.problem_report import Report
from shared.domain.tasks import DEPENDENCY_WINDOW

# Lines whose names are remembered: far more than DEPENDENCY_WINDOW, to distinguish a parent that is
# too far back from an unknown one.
REMEMBERED = 65_536

REPEATED = "duplicate id"
ITSELF = "parent dropped: the task itself"
SKIPPED = "parent dropped: its own line was skipped"
TOO_FAR = f"parent dropped: more than {DEPENDENCY_WINDOW} tasks back"
UNKNOWN = "parent dropped: no such task before it"

NO_TASK = -1


class ParentResolver:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._line: dict[str, int] = {}  # by name
        self._task = array("q", [NO_TASK]) * REMEMBERED  # by line, the oldest overwritten

    def resolve(self, rows: Rows, kept: NDArray[np.bool_], first: int) -> list[list[int]]:
        """The parents of each task as sorted task ids; the first task gets the id `first`. A line
        with a duplicate id is reported and removed from `kept`."""
        assert rows.names is not None
        assert rows.parents is not None
        resolved: list[list[int]] = []
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
                own = first + len(resolved)
                resolved.append(self._allowed(line, name, own, wanted) if wanted else [])
            if name:
                self._line[name] = line
                self._task[line % REMEMBERED] = own
        if len(self._line) > 2 * REMEMBERED:
            oldest = lines[-1] - REMEMBERED
            self._line = {name: at for name, at in self._line.items() if at > oldest}
        return resolved

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
