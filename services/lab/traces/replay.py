"""A trace streamed into a run of a running arena, each task once.

The run's stream numbers the tasks, so its next task id is how many of the file's valid tasks it
has. Whatever is lost on the way, an answer, this process or the arena, the stream says where to go
on; nothing is kept here.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.lab.traces.mapping import Mapping
from services.lab.traces.report import TraceError
from services.lab.traces.trace import Trace
from shared.batches import task_rows
from shared.errors import ArenaError, Unavailable
from shared.gateway import Gateway, Refused
from shared.spec import RunSpec
from shared.tasks import Tasks, take

REQUEST_TASKS = 10_000  # some hundred kB; the gateway takes 2 MB
# At a slow pace tasks go out this often.
TICK_SECONDS = 0.1
# An arena that is being restarted is waited for, this long.
PATIENCE_SECONDS = 60.0
AWAY_SECONDS = 0.5  # between two attempts then
PAUSED, TOO_MANY, CONFLICT = 423, 429, 409
LATER = (PAUSED, TOO_MANY, 502, 503, 504)

FINGERPRINT_BYTES = 1 << 16


class ReplayError(ArenaError):
    """The trace and the run do not belong together, or the run takes no more."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a replay stands; `waiting` says for what, when it waits."""

    run: str
    next_task: int
    waiting: str = ""


Watcher = Callable[[Progress], None]


def fingerprint(path: Path, format: str, mapping: Mapping, limit: int | None) -> str:
    """What decides which tasks a file gives: a run must go on with the same."""
    try:
        with path.open("rb") as file:
            start = file.read(FINGERPRINT_BYTES)
        size = path.stat().st_size
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from None
    said = f"{format}\n{mapping.model_dump_json()}\n{limit}\n{size}\n"
    return hashlib.sha256(said.encode() + start).hexdigest()[:8]


def run_spec(data: dict[str, Any], path: Path, mark: str) -> dict[str, Any]:
    """A person's spec as that of a run which takes this trace."""
    data = dict(data)
    if data.pop("tasks", None) is not None:
        raise ReplayError("tasks: the trace says how many there are; use --limit for fewer")
    label = str(data.get("name") or path.name)
    data["name"] = f"{label[:80]} #{mark}"
    data["workload"] = {**(data.get("workload") or {}), "source": "submitted"}
    return RunSpec.parse(data).model_dump(mode="json", exclude_unset=True)


def check_resumed(record: dict[str, Any], mark: str) -> int:
    """The next task of a run that is to go on with this trace."""
    run, spec = record["run"], record["spec"]
    if spec["workload"].get("source") != "submitted":
        raise ReplayError(f"run {run} generates its tasks: it was not started by a replay")
    if not record["name"].endswith(f"#{mark}"):
        raise ReplayError(
            f"run {run} ({record['name']}) was started from another file, --format, --mapping or "
            "--limit: give the same again"
        )
    if record["state"] == "stopped":
        raise ReplayError(f"run {run} was stopped")
    return int(record["tasks"])


class Replay:
    def __init__(
        self,
        gateway: Gateway,
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
        """Send what the run does not have yet, up to the end of the trace."""
        self.next_task = start
        began = time.monotonic()
        end = 0
        for tasks, last in _with_last(batches):
            end = int(tasks.task_id[-1]) + 1
            while self.next_task < end:
                skip = self.next_task - int(tasks.task_id[0])
                self._keep_pace(began, start)
                piece = take(tasks, slice(skip, skip + self._request()))
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
        """Until the run has it, or a part of it: `next_task` says how much."""
        rows = task_rows(piece)
        patient_until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = self._gateway.submit(self._run, rows, last=last)
                self.next_task = answer["next_task"]
                return
            except Refused as refused:
                if refused.status == CONFLICT:
                    self._find_place(refused)
                    return
                if refused.status not in LATER:
                    raise
                if refused.status in (PAUSED, TOO_MANY):  # it lives, and may take its time
                    patient_until = time.monotonic() + PATIENCE_SECONDS
                self._wait(str(refused), refused.retry_after, patient_until, refused)
            except Unavailable as away:
                self._wait("the arena does not answer", AWAY_SECONDS, patient_until, away)

    def _wait(self, why: str, seconds: float, until: float, error: ArenaError) -> None:
        if time.monotonic() > until:
            raise error
        self._watch(Progress(self._run, self.next_task, why))
        time.sleep(seconds)

    def _find_place(self, refused: Refused) -> None:
        """These tasks were not next: some are there already, from an answer that was lost."""
        place = refused.next_task
        if place is None:
            # It takes no more. That is well if it has completed, which it does only with all.
            record = self._gateway.get(f"/api/runs/{self._run}")
            place = record["tasks"] if record["state"] == "completed" else None
        if place is None:
            raise refused
        if place <= self.next_task:
            raise ReplayError(f"{refused}: somebody else feeds the run, or it lost tasks")
        self.next_task = place


def limited(batches: Iterator[Tasks], limit: int | None) -> Iterator[Tasks]:
    """The first `limit` tasks."""
    for tasks in batches:
        left = None if limit is None else limit - int(tasks.task_id[0])
        if left is not None and left <= len(tasks):
            yield take(tasks, slice(0, left))
            return
        yield tasks


def first_and_rest(trace: Trace, limit: int | None) -> Iterator[Tasks]:
    """The batches, once it is sure that there is a task: a run without one would never end."""
    batches = limited(trace.batches(), limit)
    first = next(batches, None)
    if first is None:
        raise TraceError(f"{trace.path}: no line of it is a task")

    def chained() -> Iterator[Tasks]:
        yield first
        yield from batches

    return chained()


def _with_last(batches: Iterator[Tasks]) -> Iterator[tuple[Tasks, bool]]:
    held: Tasks | None = None
    for tasks in batches:
        if held is not None:
            yield held, False
        held = tasks
    if held is not None:
        yield held, True
