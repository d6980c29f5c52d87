"""Streams a trace into a run of a running arena, each task exactly once.

The run's stream numbers the tasks, so its next task id is the number of valid tasks of the file
that it has. After a lost response or a restart of either side, the replay resumes from there; it
keeps no state of its own.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from services.lab.traces.mapping import Mapping
from services.lab.traces.pretraining import fitted_workload
from services.lab.traces.problem_report import TraceError
from services.lab.traces.trace import Trace
from shared.domain.spec import MOST_LOCKSTEP_TASKS, RunSpec
from shared.domain.tasks import (
    LARGEST,
    MOST_BATCH_TASKS,
    Tasks,
    concatenate,
    first_batch,
    take,
)
from shared.errors import ArenaError, Unavailable
from shared.messages.batches import task_rows
from shared.runtime.gateway_client import GatewayClient, Refused

REQUEST_TASKS = MOST_BATCH_TASKS  # some hundred kB; the gateway takes 2 MB
# At a slow pace tasks are sent this often.
TICK_SECONDS = 0.1
# How long to retry while the arena is restarting.
RETRY_FOR_SECONDS = 60.0
RETRY_SECONDS = 0.5
PAUSED, TOO_MANY, CONFLICT = 423, 429, 409
RETRIED = (PAUSED, TOO_MANY, 502, 503, 504)

FINGERPRINT_BYTES = 1 << 16

# Tasks of the first part that the workload of pre-training is fitted to.
MOST_PRETRAINED = 100_000


class ReplayError(ArenaError):
    """The trace and the run do not match, or the run accepts no more tasks."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a replay; `waiting` is the reason while it waits."""

    run: str
    next_task: int
    waiting: str = ""


Watcher = Callable[[Progress], None]


def fingerprint(
    path: Path, format: str, mapping: Mapping, limit: int | None, load: float | None = None
) -> str:
    """Identifies the tasks of a file: a run can only be resumed with the same."""
    try:
        with path.open("rb") as file:
            start = file.read(FINGERPRINT_BYTES)
        size = path.stat().st_size
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from None
    options = f"{format}\n{mapping.model_dump_json()}\n{limit}\n{load}\n{size}\n"
    return hashlib.sha256(options.encode() + start).hexdigest()[:8]


def run_spec(data: dict[str, Any], path: Path, mark: str) -> dict[str, Any]:
    """The user's spec as that of a run which takes this trace."""
    data = dict(data)
    if data.pop("tasks", None) is not None:
        raise ReplayError("tasks: the trace determines the number; use --limit for fewer")
    label = str(data.get("name") or path.name)
    data["name"] = f"{label[:80]} #{mark}"
    data["workload"] = {**(data.get("workload") or {}), "source": "submitted"}
    return RunSpec.parse(data).model_dump(mode="json", exclude_unset=True)


def complete_spec(data: dict[str, Any], trace: Trace, pretrain: Tasks | None) -> dict[str, Any]:
    """The spec of the run, completed from the trace: how far back parents are, and what learners
    are pre-trained on."""
    if not trace.has_times:
        raise ReplayError(
            f"{trace.path}: its sizes are steps, not time: choose a platform with measured times "
            "of these kinds (--platform)"
        )
    workload = dict(data["workload"])
    if window := trace.survey().links.window:
        workload["dependencies"] = {**(workload.get("dependencies") or {}), "window": window}
    if pretrain is not None:
        workload |= fitted_workload(pretrain, trace.spec)
    learning = dict(data.get("learning") or {})
    if trace.survey().tasks > MOST_LOCKSTEP_TASKS:
        learning.setdefault("sync", "free")
    return {**data, "workload": workload, **({"learning": learning} if learning else {})}


def stretch(trace: Trace, load: float | None) -> float:
    """The factor of all arrivals that gives this load."""
    if load is None:
        return 1.0
    offered = trace.survey().load
    if offered is None:
        raise ReplayError(f"{trace.path}: all tasks arrive at once: there is no load to change")
    factor = offered.cluster / load
    if offered.span_s * factor > LARGEST:
        raise ReplayError(
            f"at a load of {load:g} the last task would arrive after {LARGEST:g} s: choose a "
            "higher load or a larger platform"
        )
    return factor


def rescaled(batches: Iterator[Tasks], factor: float) -> Iterator[Tasks]:
    for tasks in batches:
        yield replace(tasks, arrival_time=tasks.arrival_time * factor)


def first_part(batches: Iterator[Tasks], most: int = MOST_PRETRAINED) -> Tasks:
    """All of these tasks, up to the most that pre-training looks at."""
    taken, remaining = [], most
    for tasks in batches:
        taken.append(take(tasks, slice(0, remaining)))
        remaining -= len(taken[-1])
        if not remaining:
            break
    return concatenate(taken)


def check_resumed(record: dict[str, Any], mark: str) -> int:
    """The next task of a run that is resumed with this trace."""
    run, spec = record["run"], record["spec"]
    if spec["workload"].get("source") != "submitted":
        raise ReplayError(f"run {run} generates its own tasks: it was not started by a replay")
    if not record["name"].endswith(f"#{mark}"):
        raise ReplayError(
            f"run {run} ({record['name']}) was started from another file, --format, --mapping, "
            "--limit or --load: use the same again"
        )
    if record["state"] == "stopped":
        raise ReplayError(f"run {run} was stopped")
    return int(record["tasks"])


class Replay:
    def __init__(
        self,
        gateway: GatewayClient,
        run: str,
        *,
        pace: float | None,
        watch: Watcher = lambda progress: None,
    ) -> None:
        self._gateway = gateway
        self._run = run
        self._pace = pace
        self._watch = watch
        self.next_task = 0

    def send(self, batches: Iterator[Tasks], start: int = 0) -> None:
        """Send the tasks that the run does not have yet."""
        self.next_task = start
        began = time.monotonic()
        end = 0
        for tasks, last in _with_last(undivided(batches)):
            end = int(tasks.task_id[-1]) + 1
            while self.next_task < end:
                skip = self.next_task - int(tasks.task_id[0])
                self._keep_pace(began, start)
                rest = take(tasks, slice(skip, None))
                piece = take(rest, slice(0, first_batch(rest, self._request(), MOST_BATCH_TASKS)))
                self._send(piece, last and int(piece.task_id[-1]) + 1 == end)
                self._watch(Progress(self._run, self.next_task))
        if self.next_task > end:
            raise ReplayError(
                f"run {self._run} has {self.next_task} tasks, and the trace only {end}"
            )

    def _request(self) -> int:
        if self._pace is None:
            return REQUEST_TASKS
        return min(max(int(self._pace * TICK_SECONDS), 1), REQUEST_TASKS)

    def _keep_pace(self, began: float, start: int) -> None:
        if self._pace is not None:
            due = began + (self.next_task - start) / self._pace
            time.sleep(max(due - time.monotonic(), 0.0))

    def _send(self, piece: Tasks, last: bool) -> None:
        """Retry until the run has the tasks or a part of them: `next_task` is updated."""
        rows = task_rows(piece)
        deadline = time.monotonic() + RETRY_FOR_SECONDS
        while True:
            try:
                response = self._gateway.submit(self._run, rows, last=last)
                self.next_task = response["next_task"]
                return
            except Refused as refused:
                if refused.status == CONFLICT:
                    self._resume_after_conflict(refused)
                    return
                if refused.status not in RETRIED:
                    raise
                if refused.status in (PAUSED, TOO_MANY):  # the arena is up
                    deadline = time.monotonic() + RETRY_FOR_SECONDS
                self._wait(str(refused), refused.retry_after, deadline, refused)
            except Unavailable as error:
                self._wait("the arena does not answer", RETRY_SECONDS, deadline, error)

    def _wait(self, why: str, seconds: float, until: float, error: ArenaError) -> None:
        if time.monotonic() > until:
            raise error
        self._watch(Progress(self._run, self.next_task, why))
        time.sleep(seconds)

    def _resume_after_conflict(self, refused: Refused) -> None:
        """The run already has some of these tasks: the response to them was lost."""
        next_task = refused.next_task
        if next_task is None:
            # The run accepts no more tasks. It completes only when it has all of them.
            record = self._gateway.get(f"/api/runs/{self._run}")
            next_task = record["tasks"] if record["state"] == "completed" else None
        if next_task is None:
            raise refused
        if next_task <= self.next_task:
            raise ReplayError(f"{refused}: another client submits to this run, or it lost tasks")
        self.next_task = next_task


def first_and_rest(batches: Iterator[Tasks]) -> Iterator[Tasks]:
    """The batches; a trace without tasks is an error now, before a run is started for it."""
    return chain([next(batches)], batches)


def undivided(batches: Iterator[Tasks]) -> Iterator[Tasks]:
    """The same tasks in batches that do not end among tasks that arrive at the same moment, unless
    these are too many."""
    held: list[Tasks] = []
    for tasks in batches:
        tasks = concatenate([*held, tasks])
        latest = int(np.searchsorted(tasks.arrival_time, tasks.arrival_time[-1]))
        if len(tasks) - latest > MOST_BATCH_TASKS:
            latest = len(tasks)
        if latest:
            yield take(tasks, slice(0, latest))
        held = [take(tasks, slice(latest, None))] if latest < len(tasks) else []
    yield from held


def _with_last(batches: Iterator[Tasks]) -> Iterator[tuple[Tasks, bool]]:
    held: Tasks | None = None
    for tasks in batches:
        if held is not None:
            yield held, False
        held = tasks
    if held is not None:
        yield held, True
