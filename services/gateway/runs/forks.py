"""Forks a run at a task: another run that shares everything before it.

This module only decides what the fork is and stores that in its record. Then the recorder copies
the shared rows, the simulator makes the clusters as they were, the trainer continues the models,
and the generator sends the tasks.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from services.gateway.runs.control import RunControl
from services.gateway.runs.schemas import ForkRequest
from shared.bus.client import Bus
from shared.bus.forks import parent_of
from shared.bus.task_stream import load_position
from shared.domain.learning.lockstep import deciding_version
from shared.domain.spec import RunSpec
from shared.domain.spec_paths import changed_spec
from shared.domain.workload import Cursor, generate
from shared.errors import NotAllowed, SpecError
from shared.messages.runs import Fork, RunRecord
from shared.store.client import Store

RESULTS_BEFORE = """
    SELECT scheduler, uniqExact(task_id) AS tasks FROM scheduler_results
    WHERE run = {run:String} AND task_id < {at:Int64} GROUP BY scheduler
"""
STORED_TASKS = "SELECT max(task_id) + 1 AS tasks FROM tasks WHERE run = {run:String}"
TASK_AT = """
    SELECT batch, arrival_time FROM tasks FINAL
    WHERE run = {run:String} AND task_id = {task:Int64}
"""
# Tasks that arrive together are decided together.
FIRST_OF_MOMENT = """
    SELECT min(task_id) AS first FROM tasks FINAL
    WHERE run = {run:String} AND task_id <= {task:Int64} AND arrival_time = {arrival:Float64}
"""
GENERATED_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True)
class Branch:
    """Where a fork begins."""

    parent: RunRecord  # decided the task before `at` itself
    at: int
    spec: RunSpec
    sources: dict[str, str]  # by scheduler of the fork: that of the parent which it continues


class Forks:
    def __init__(self, control: RunControl, bus: Bus, store: Store) -> None:
        self._control = control
        self._bus = bus
        self._store = store

    async def start(self, run: str, request: ForkRequest) -> RunRecord:
        named = await self._control.run_book.get(run)
        if named.spec.real:
            raise NotAllowed(
                f"run {run} is a real one: its machine cannot be put back to the state at a task; "
                "fork a simulated run"
            )
        spec = changed_spec(_base(named, request), request.changes)
        branch = await self._branch(named, request, spec)
        if branch.at:
            await self._check_results(branch)
        cursor, next_batch = await self._position(branch)
        if spec.tasks is not None and spec.tasks <= cursor.generated:
            raise SpecError([f"tasks: must be above {cursor.generated}, where the fork begins"])
        submitted = await self._submitted_tasks(branch)

        def make_fork(deployed: dict[str, str]) -> Fork:
            return Fork(
                run=branch.parent.run,
                at=branch.at,
                changes=tuple(request.changes),
                cursor=cursor,
                next_batch=next_batch,
                takes_over={name: of for name, of in branch.sources.items() if of != name},
                learners=_continued_learners(branch, deployed),
                version=_version(branch),
                same_platform=_same_platform(branch),
                **submitted,
            )

        return await self._control.branch(spec, make_fork)

    async def _branch(self, named: RunRecord, request: ForkRequest, spec: RunSpec) -> Branch:
        """The run that decided the task before `at`: a fork of a fork may begin before it."""
        at = await self._whole_workflow(named, request.at)
        sources, parent = _sources(named, spec, request.takes_over), named
        while parent.fork is not None and at <= parent.fork.at:
            taken_over = parent.fork.takes_over
            sources = {name: taken_over.get(of, of) for name, of in sources.items()}
            above = await parent_of(self._control.run_book, parent)
            assert above is not None
            parent = above
        await parent_of(self._control.run_book, parent)  # its state comes from there
        return Branch(parent, at, spec, sources)

    async def _whole_workflow(self, record: RunRecord, at: int) -> int:
        """The first task that is decided together with this one."""
        stored = await self._query(STORED_TASKS, run=record.run)
        tasks = int(stored[0]["tasks"])
        if not 0 <= at < (record.spec.tasks or max(tasks, 1)):
            last = (record.spec.tasks or tasks) - 1
            raise SpecError([f"at: run {record.run} has the tasks 0 to {last}, and no task {at}"])
        if not record.spec.submitted:
            return at - at % (record.spec.workload.dependencies.workflow or 1)
        task = await self._query(TASK_AT, run=record.run, task=at)
        if not task:
            raise NotAllowed(f"task {at} of run {record.run} is not stored yet: try again later")
        arrival = task[0]["arrival_time"]
        first = await self._query(FIRST_OF_MOMENT, run=record.run, task=at, arrival=arrival)
        return int(first[0]["first"])

    async def _check_results(self, branch: Branch) -> None:
        run, at = branch.parent.run, branch.at
        rows = await self._query(RESULTS_BEFORE, run=run, at=at)
        stored = {row["scheduler"]: int(row["tasks"]) for row in rows}
        late = {of: stored.get(of, 0) for of in branch.sources.values() if stored.get(of, 0) < at}
        if late:
            counts = ", ".join(f"{name} has {count:,}" for name, count in sorted(late.items()))
            raise NotAllowed(
                f"a fork at task {at} needs the results of all {at:,} tasks before it in run "
                f"{run}, and {counts}: wait, fork at an earlier task, or leave schedulers out "
                "(schedulers=NAME,NAME)"
            )

    async def _position(self, branch: Branch) -> tuple[Cursor, int]:
        """Where the task stream of the fork begins."""
        parent, at = branch.parent, branch.at
        if at == 0:
            return Cursor(), 0
        (before,) = await self._query(TASK_AT, run=parent.run, task=at - 1)
        if parent.spec.submitted:
            cursor = Cursor(next_task=at, clock=before["arrival_time"])
        else:
            cursor = await asyncio.to_thread(_generated_before, parent, at)
            await self._refuse_added_tasks(parent, cursor, before["arrival_time"])
        return cursor, int(before["batch"]) + 1

    async def _refuse_added_tasks(self, parent: RunRecord, cursor: Cursor, arrival: float) -> None:
        """Raise if a run that generates its tasks was also given submitted ones."""
        stored = await self._query(STORED_TASKS, run=parent.run)
        most = parent.spec.tasks
        if cursor.clock != arrival or (most is not None and stored[0]["tasks"] > most):
            raise NotAllowed(
                f"tasks were submitted to run {parent.run} while it generated its own: which ones "
                "is not stored, so a fork cannot have them again"
            )

    async def _submitted_tasks(self, branch: Branch) -> dict[str, Any]:
        """How many submitted tasks the fork gets from its parent."""
        parent = branch.parent
        if not branch.spec.submitted:
            return {}
        if not parent.spec.submitted:
            raise SpecError(["workload.source: cannot be changed: its tasks are generated"])
        if parent.active:
            cursor = (await load_position(self._bus, parent.run, parent.fork)).cursor
            return {"submitted": cursor.next_task, "ended": cursor.ended}
        stored = await self._query(STORED_TASKS, run=parent.run)
        return {"submitted": int(stored[0]["tasks"]), "ended": True}

    async def _query(self, sql: str, **values: Any) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._store.query, sql, values)


def _base(record: RunRecord, request: ForkRequest) -> RunSpec:
    """The spec that is changed: without schedulers that do not take part any more, and with a name
    that says what it is."""
    name = f"{record.spec.name or record.run}, fork at {request.at}"
    return record.spec.model_copy(update={"name": name[:100], "schedulers": record.competing})


def _sources(named: RunRecord, spec: RunSpec, takes_over: dict[str, str]) -> dict[str, str]:
    """For each scheduler of the fork, the one of the run whose cluster it continues."""
    known = named.spec.schedulers
    problems = [
        f"takes_over.{name}: {of} takes no part in run {named.run}; allowed: {', '.join(known)}"
        for name, of in takes_over.items()
        if of not in known
    ]
    problems += [
        f"takes_over.{name}: {name} is no scheduler of the fork; name it in schedulers"
        for name in takes_over
        if name not in spec.schedulers
    ]
    sources = {}
    for name in spec.schedulers:
        of = takes_over.get(name) or (name if name in known else None)
        if of is None and len(known) == 1:
            of = known[0]
        if of is None:
            problems.append(
                f"schedulers: {name} takes no part in run {named.run}: say whose cluster it takes "
                f"over (takes_over: {name}=NAME); allowed: {', '.join(known)}"
            )
        else:
            sources[name] = of
    if problems:
        raise SpecError(problems)
    return sources


def _generated_before(parent: RunRecord, at: int) -> Cursor:
    """The cursor of a run that generates its tasks, before task `at`. Only generating them gives
    the exact position; it takes a second for a million."""
    cursor = parent.fork.cursor if parent.fork else Cursor()
    while (remaining := at - cursor.next_task) > 0:
        _, cursor = generate(parent.spec, cursor, min(remaining, GENERATED_AT_ONCE))
    return cursor


def _same_platform(branch: Branch) -> bool:
    spec, before = branch.spec, branch.parent.spec
    above = branch.parent.fork
    same = spec.cluster == before.cluster and spec.physics == before.physics
    return same and (above is None or above.same_platform)


def _version(branch: Branch) -> int | None:
    spec = branch.parent.spec
    return deciding_version(branch.at, spec) if spec.lockstep else None


def _continued_learners(branch: Branch, deployed: dict[str, str]) -> dict[str, int]:
    """The learners that continue with the parent's models, each with the first task that it may
    learn from. Empty if devices, prices or settings differ from those that the models are for."""
    spec, parent = branch.spec, branch.parent
    before = parent.spec
    settings = {"sync": "auto"}
    if (
        spec.cluster != before.cluster
        or spec.physics != before.physics
        or spec.learning.model_copy(update=settings) != before.learning.model_copy(update=settings)
    ):
        return {}
    above = parent.fork
    return {
        name: 0 if above is None else above.learners.get(name, above.at)
        for name, of in branch.sources.items()
        if of == name and deployed[name] == name and name in parent.learning_schedulers
    }
