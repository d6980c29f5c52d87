"""Which task waits for which: the names of parents resolved to task ids, over the complete file.

A first pass over the trace collects every line's name and its parents' names, as hashes of eight
bytes. From these follow the ids of all parents, and that of each task's last child, which the
virtual cluster has to know when it serves the task. The second pass looks them up.

A task whose line was skipped hands its parents on to its children.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from services.lab.traces.formats.text_columns import Rows
from services.lab.traces.problem_report import Report
from shared.domain.tasks import FARTHEST_PARENT, Bools, Integers

REPEATED = "duplicate id"
ITSELF = "parent dropped: the task itself"
UNKNOWN = "parent dropped: no such task before it"
HANDED_ON = "parent replaced by its own parents: its line was skipped"

# Lines among which an id may not occur twice.
REMEMBERED = 16_384

NO_TASK = -1
NO_LINE = np.iinfo(np.int64).max


@dataclass(slots=True)
class RecentNames:
    """Finds lines that repeat the id of an earlier task. It works line by line, so the result does
    not depend on how the file is divided into blocks."""

    report: Report
    _line: dict[str, int] = field(default_factory=dict)
    _lines: int = 0

    def remove_repeated(self, rows: Rows, kept: Bools) -> None:
        """Report these lines, and remove them from `kept`."""
        for place, name in enumerate(rows.names or ()):
            line = self._lines + place
            if not name or not kept[place]:
                continue
            if line - self._line.get(name, -REMEMBERED) < REMEMBERED:
                self.report.skip(int(rows.line[place]), REPEATED, name)
                kept[place] = False
            else:
                self._line[name] = line
        self._lines += len(rows)
        if len(self._line) > 2 * REMEMBERED:
            oldest = self._lines - REMEMBERED
            self._line = {name: line for name, line in self._line.items() if line > oldest}


@dataclass(frozen=True, slots=True)
class Linked:
    """The parents of some tasks, and the id of the last child of each."""

    parents: list[list[int]]
    last_child: Integers


class Linker(Protocol):
    def resolve(self, rows: Rows, kept: Bools, first: int) -> Linked:
        """The links of the lines that are kept, the first of which is task `first`."""


class LinkCollector:
    """The first pass: collects the names, and returns no parents yet."""

    def __init__(self) -> None:
        # By block of lines: names, and tasks (NO_TASK: skipped).
        self._names: list[Integers] = []
        self._kept: list[Bools] = []
        # By edge: the child's line and task, and the parent's name.
        self._edges: list[Integers] = [np.zeros((3, 0), np.int64)]
        self._lines = 0

    def resolve(self, rows: Rows, kept: Bools, first: int) -> Linked:
        count = int(kept.sum())
        if rows.names is not None and rows.parents is not None:
            self._names.append(_hashes(rows.names))
            self._kept.append(kept.copy())
            task = _numbered(kept, first).tolist()
            edges = [
                (self._lines + place, task[place], hash(parent))
                for place, names in enumerate(rows.parents)
                if names
                for parent in dict.fromkeys(names)
            ]
            self._lines += len(rows)
            if edges:
                self._edges.append(np.array(edges, np.int64).T)
        return Linked([], np.arange(first, first + count))

    def links(self, report: Report) -> TaskLinks:
        child_line, child, parent = np.concatenate(self._edges, axis=1)
        self._edges.clear()
        names = np.unique(parent)
        at_line, at_task, task = self._first_lines(names)
        place = np.searchsorted(names, parent)
        # An id belongs to the first line that is a task; if there is none yet, to a skipped line.
        is_task = at_task[place] < child_line
        line = np.where(is_task, at_task[place], at_line[place])
        unknown = line >= child_line
        edges = _Edges(child_line, child, line, np.where(is_task, task[place], NO_TASK))
        own = np.zeros(len(parent), np.bool_)
        own[line == child_line] = True
        return TaskLinks(edges, unknown & ~own, own, report)

    def _first_lines(self, names: Integers) -> tuple[Integers, Integers, Integers]:
        """For these names: the first line, the first line that is a task, and that task."""
        at_line, at_task = np.full((2, len(names)), NO_LINE)
        tasks = np.full(len(names), NO_TASK)
        first_line = first_task = 0
        for block, kept in zip(self._names, self._kept, strict=True):
            if len(names):
                place = np.minimum(np.searchsorted(names, block), len(names) - 1)
                matches = np.flatnonzero((names[place] == block) & (block != 0))
                place, line = place[matches], first_line + matches
                np.minimum.at(at_line, place, line)
                is_task, task = kept[matches], _numbered(kept, first_task)[matches]
                # The last assignment counts, so in reverse.
                new = np.flatnonzero(is_task & (at_task[place] == NO_LINE))[::-1]
                at_task[place[new]], tasks[place[new]] = line[new], task[new]
            first_line += len(block)
            first_task += int(kept.sum())
        return at_line, at_task, tasks


def _hashes(names: list[str]) -> Integers:
    """0 for no name. Python's hash of a text is the same all through a process."""
    return np.array([hash(name) if name else 0 for name in names], np.int64)


def _numbered(kept: Bools, first: int) -> Integers:
    return np.where(kept, first + np.cumsum(kept) - 1, NO_TASK)


@dataclass(frozen=True, slots=True)
class _Edges:
    """Lines and tasks of children and parents; NO_TASK: the line was skipped."""

    child_line: Integers
    child: Integers
    line: Integers
    parent: Integers

    def take(self, which: Bools | Integers) -> _Edges:
        return _Edges(
            self.child_line[which], self.child[which], self.line[which], self.parent[which]
        )

    def between_tasks(self) -> tuple[Integers, Integers]:
        """Children and parents, sorted: a skipped parent is replaced by its own parents."""
        every = self.take(np.argsort(self.child_line, kind="stable"))
        edges = every.take(every.child != NO_TASK)
        child, line, parent = edges.child, edges.line, edges.parent
        while (skipped := parent == NO_TASK).any():
            low = np.searchsorted(every.child_line, line[skipped], "left")
            counts = np.searchsorted(every.child_line, line[skipped], "right") - low
            starts = np.repeat(low - (np.cumsum(counts) - counts), counts)
            handed_on = starts + np.arange(len(starts))
            child = np.concatenate((child[~skipped], np.repeat(child[skipped], counts)))
            line = np.concatenate((line[~skipped], every.line[handed_on]))
            parent = np.concatenate((parent[~skipped], every.parent[handed_on]))
            child, line, parent = np.unique(np.stack((child, line, parent)), axis=1)
        order = np.lexsort((parent, child))
        child, parent = child[order], parent[order]
        new = np.ones(len(child), np.bool_)
        new[1:] = (np.diff(child) != 0) | (np.diff(parent) != 0)
        return child[new], parent[new]


class TaskLinks:
    """The second pass."""

    def __init__(self, edges: _Edges, unknown: Bools, itself: Bools, report: Report) -> None:
        self._report = report
        self._unknown, self._itself = unknown, itself
        self._handed_on = ~unknown & ~itself & (edges.parent == NO_TASK)
        child, parent = edges.take(~unknown & ~itself).between_tasks()
        near = child - parent <= FARTHEST_PARENT
        if not near.all():
            report.note(
                f"{int((~near).sum()):,} parents dropped: more than {FARTHEST_PARENT:,} tasks back"
            )
        self._child, self._parent = child[near], parent[near]
        self.window = int((self._child - self._parent).max(initial=0))
        self._parents, number = np.unique(self._parent, return_inverse=True)
        self._last_child = np.zeros(len(self._parents), np.int64)
        np.maximum.at(self._last_child, number, self._child)
        self.restart()

    def restart(self) -> None:
        """Go back to before the first line."""
        self._edge = 0

    def resolve(self, rows: Rows, kept: Bools, first: int) -> Linked:
        self._report_parents(rows, kept)
        count = int(kept.sum())
        last_child = np.arange(first, first + count)
        low, high = np.searchsorted(self._parents, (first, first + count))
        last_child[self._parents[low:high] - first] = self._last_child[low:high]
        bounds = np.searchsorted(self._child, np.arange(first, first + count + 1))
        parents = self._parent[bounds[0] : bounds[-1]].tolist()
        if not parents:
            return Linked([], last_child)
        cuts = (bounds - bounds[0]).tolist()
        return Linked(
            [parents[cuts[place] : cuts[place + 1]] for place in range(count)], last_child
        )

    def _report_parents(self, rows: Rows, kept: Bools) -> None:
        """Report what became of the parents of these lines."""
        for place, names in enumerate(rows.parents or ()):
            for name in dict.fromkeys(names) if names else ():
                edge, self._edge = self._edge, self._edge + 1
                problem = (
                    ITSELF if self._itself[edge]
                    else UNKNOWN if self._unknown[edge]
                    else HANDED_ON if self._handed_on[edge]
                    else ""
                )  # fmt: skip
                if problem and kept[place]:
                    self._report.adjust(int(rows.line[place]), problem, name)
