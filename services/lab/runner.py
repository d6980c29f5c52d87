"""Runs an experiment on an arena: every variant with every seed, one run after the other.

What is done is kept at once, so whatever is interrupted goes on where it was: a run that was under
way is waited for again, for the arena has gone on with it or will.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as replaced
from functools import partial
from typing import Any

from services.lab import provenance
from services.lab.collect import collect
from services.lab.experiment import ExperimentError
from services.lab.journal import Entry, Folder
from services.lab.writing import replace_text
from shared.errors import ArenaError
from shared.gateway import Gateway, Refused, patiently
from shared.store.client import Store, StoreError

LOOK_SECONDS = 0.25
# Where nothing has come for so long, people want to know why.
STILL_SECONDS = 30.0
# The recorder has noted a run long before that.
NOTED_SECONDS = 15.0

WRONG_STORE = (
    "set HYBRID_CLICKHOUSE_URL, HYBRID_CLICKHOUSE_USER, HYBRID_CLICKHOUSE_PASSWORD and "
    "HYBRID_CLICKHOUSE_DATABASE to those of this arena, or use --data-dir for a local one"
)


class Interrupted(ArenaError):
    """Somebody asked to stop; what was done is kept."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an experiment is, for whoever shows it."""

    done: int
    runs: int
    label: str
    processed: int
    tasks: int
    note: str = ""  # what seems to hold it up


class Runner:
    def __init__(
        self,
        folder: Folder,
        gateway: Gateway,
        store: Store,
        tell: Callable[[Progress], None],
        stopping: threading.Event,
    ) -> None:
        self._folder, self._gateway, self._store = folder, gateway, store
        self._tell, self._stopping = tell, stopping

    def run(self) -> None:
        experiment = self._folder.experiment
        places = list(experiment.runs())
        self._check_store()
        self._check_competitors()
        for number, (variant, seed) in enumerate(places):
            entry = self._folder.journal.entry(variant, seed)
            if entry is not None and entry.done:
                continue
            label = " ".join(filter(None, (experiment.label(variant), f"seed {seed}")))
            reached = Progress(number, len(places), label, 0, experiment.tasks)
            entry = self._continued(entry) if entry else self._started(variant, seed)
            detail = self._wait(entry.run, reached)
            entry.seconds = round(detail["updated_at"] - detail["created_at"], 3)
            entry.tasks_per_s = round(experiment.tasks / max(entry.seconds, 1e-3), 1)
            entry.spec = detail["spec"]
            found = collect(
                self._store, experiment, variant, seed, entry.run, entry.spec["schedulers"]
            )
            self._folder.keep(entry, found)
        self._tell(Progress(len(places), len(places), "", 0, experiment.tasks))

    def _check_store(self) -> None:
        """Results are read from ClickHouse itself: it must be the one that this arena fills."""
        problem = self._store.ping()
        if problem is not None:
            raise ExperimentError(f"ClickHouse does not answer ({problem}): {WRONG_STORE}")
        listed = self._patiently(partial(self._gateway.get, "/api/runs", limit=20))
        runs = [run["run"] for run in listed]
        deadline = time.monotonic() + NOTED_SECONDS
        while runs and not self._knows(runs):
            if time.monotonic() > deadline:
                raise ExperimentError(f"ClickHouse knows no run of this arena: {WRONG_STORE}")
            self._pause()

    def _knows(self, runs: list[str]) -> bool:
        try:
            found = self._store.query(
                "SELECT count() AS known FROM runs WHERE run IN {runs:Array(String)}",
                {"runs": runs},
            )
        except StoreError:  # not even the table
            return False
        return bool(found[0]["known"])

    def _check_competitors(self) -> None:
        """Ask the arena to check every variant's spec before the first run is started."""
        experiment = self._folder.experiment
        for variant in experiment.variants:
            spec = experiment.run_spec(variant, experiment.seeds[0]).model_dump(mode="json")
            said = self._patiently(partial(self._gateway.post, "/api/runs/check", spec))
            if not said["ok"]:
                hint = "".join(
                    f"; start the arena with --add {plugin}" for plugin in experiment.plugins
                )
                raise ExperimentError("\n".join(said["problems"]) + hint)

    def _started(self, variant: str, seed: int) -> Entry:
        spec = self._folder.experiment.run_spec(variant, seed).model_dump(mode="json")
        spec["name"] = f"{spec['name']} ({self._folder.journal.id})"
        run = self._patiently(lambda: self._start_once(spec))
        entry = Entry(variant=variant, seed=seed, run=run)
        self._folder.journal.entries.append(entry)
        self._folder.save()
        return entry

    def _start_once(self, spec: dict[str, Any]) -> str:
        """A run whose start was not answered (or not noted) is found by its name."""
        for run in self._gateway.get("/api/runs", limit=20):
            if run["name"] == spec["name"] and run["state"] != "stopped":
                return str(run["run"])
        return str(self._gateway.post("/api/runs", spec)["run"])

    def _continued(self, entry: Entry) -> Entry:
        """The run that was under way, if the arena still has it; else a new one."""
        try:
            state = self._patiently(lambda: self._gateway.get(f"/api/runs/{entry.run}"))["state"]
        except Refused as error:
            if error.status != 404:
                raise
            state = "stopped"
        if state != "stopped":
            entry.resumed = True
            if state == "paused":
                self._patiently(lambda: self._gateway.post("/api/simulation/resume", run=entry.run))
            return entry
        self._folder.journal.entries.remove(entry)
        return self._started(entry.variant, entry.seed)

    def _wait(self, run: str, reached: Progress) -> dict[str, Any]:
        """Until every task has a stored result from every scheduler."""
        moved = time.monotonic()
        while True:
            status = self._patiently(lambda: self._gateway.get("/api/status", run=run))
            if status["tasks_processed"] != reached.processed:
                moved = time.monotonic()
            reached = replaced(reached, processed=status["tasks_processed"])
            still = time.monotonic() - moved >= STILL_SECONDS
            self._tell(replaced(reached, note=held_up_by(status) if still else ""))
            if status["state"] == "stopped":
                raise ExperimentError(f"run {run} was stopped by somebody")
            if status["state"] == "completed":
                return dict(self._patiently(lambda: self._gateway.get(f"/api/runs/{run}")))
            self._pause()

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        return patiently(ask, self._pause)

    def _pause(self, seconds: float = LOOK_SECONDS) -> None:
        if self._stopping.wait(seconds):
            raise Interrupted("interrupted")


def held_up_by(status: dict[str, Any]) -> str:
    """The run's state, and who has most to catch up with."""
    lag = status.get("lag") or {}
    worst = max(lag, key=lambda name: lag[name], default=None)
    behind = f"; {worst} is {lag[worst]:,} messages behind" if worst and lag[worst] else ""
    return f"no progress for a while: the run is {status['state']}{behind}"


def finish(folder: Folder) -> None:
    """All runs are done: what the report is made from."""
    folder.merge()
    found = provenance.describe(folder.journal)
    replace_text(folder.path / "provenance.json", json.dumps(found, indent=1) + "\n")
