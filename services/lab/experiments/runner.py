"""Runs an experiment on an arena: every variant with every seed, one run after the other.

The tables of a run are stored as soon as it is done. A resumed experiment continues with the run
that was interrupted.
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

from services.lab.atomic_write import replace_text
from services.lab.experiments import provenance
from services.lab.experiments.collect import collect
from services.lab.experiments.declaration import ExperimentError
from services.lab.experiments.journal import Entry, Folder
from services.lab.experiments.run_completion import POLL_SECONDS, wait_until_complete
from shared.errors import ArenaError
from shared.runtime.gateway_client import GatewayClient, Refused, retry_while_unavailable
from shared.store.client import Store, StoreError

# The recorder stores a new run within this time.
RECORDED_SECONDS = 15.0

WRONG_STORE = (
    "set HYBRID_CLICKHOUSE_URL, HYBRID_CLICKHOUSE_USER, HYBRID_CLICKHOUSE_PASSWORD and "
    "HYBRID_CLICKHOUSE_DATABASE to those of this arena, or use --data-dir for a local one"
)


class Interrupted(ArenaError):
    """The user interrupted the experiment; completed runs are stored."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an experiment."""

    done: int
    runs: int
    label: str
    processed: int
    tasks: int
    note: str = ""  # why it is stalled


class Runner:
    def __init__(
        self,
        folder: Folder,
        gateway: GatewayClient,
        store: Store,
        report: Callable[[Progress], None],
        stopping: threading.Event,
    ) -> None:
        self._folder, self._gateway, self._store = folder, gateway, store
        self._report, self._stopping = report, stopping

    def run(self) -> None:
        experiment = self._folder.experiment
        runs = list(experiment.runs())
        self._check_store()
        self._check_specs()
        for number, (variant, seed) in enumerate(runs):
            entry = self._folder.journal.entry(variant, seed)
            if entry is not None and entry.done:
                continue
            label = " ".join(filter(None, (experiment.label(variant), f"seed {seed}")))
            progress = Progress(number, len(runs), label, 0, experiment.tasks)
            entry = self._resume(entry) if entry else self._start(variant, seed)
            detail = self._wait(entry.run, progress)
            entry.seconds = round(detail["updated_at"] - detail["created_at"], 3)
            entry.tasks_per_s = round(experiment.tasks / max(entry.seconds, 1e-3), 1)
            entry.spec = detail["spec"]
            tables = collect(
                self._store, experiment, variant, seed, entry.run, entry.spec["schedulers"]
            )
            self._folder.store(entry, tables)
        self._report(Progress(len(runs), len(runs), "", 0, experiment.tasks))

    def _check_store(self) -> None:
        """Results are read from ClickHouse directly: check that it is this arena's store."""
        problem = self._store.ping()
        if problem is not None:
            raise ExperimentError(f"ClickHouse does not answer ({problem}): {WRONG_STORE}")
        listed = self._retried(partial(self._gateway.get, "/api/runs", limit=20))
        runs = [run["run"] for run in listed]
        deadline = time.monotonic() + RECORDED_SECONDS
        while runs and not self._stored(runs):
            if time.monotonic() > deadline:
                raise ExperimentError(f"ClickHouse has no run of this arena: {WRONG_STORE}")
            self._pause()

    def _stored(self, runs: list[str]) -> bool:
        try:
            rows = self._store.query(
                "SELECT count() AS stored FROM runs WHERE run IN {runs:Array(String)}",
                {"runs": runs},
            )
        except StoreError:  # no such table
            return False
        return bool(rows[0]["stored"])

    def _check_specs(self) -> None:
        """Validate the spec of every variant on the arena before the first run is started."""
        experiment = self._folder.experiment
        for variant in experiment.variants:
            spec = experiment.run_spec(variant, experiment.seeds[0]).model_dump(mode="json")
            check = self._retried(partial(self._gateway.post, "/api/runs/check", spec))
            if not check["ok"]:
                hint = "".join(
                    f"; start the arena with --add {plugin}" for plugin in experiment.plugins
                )
                raise ExperimentError("\n".join(check["problems"]) + hint)

    def _start(self, variant: str, seed: int) -> Entry:
        spec = self._folder.experiment.run_spec(variant, seed).model_dump(mode="json")
        spec["name"] = f"{spec['name']} ({self._folder.journal.id})"
        run = self._retried(lambda: self._start_once(spec))
        entry = Entry(variant=variant, seed=seed, run=run)
        self._folder.journal.entries.append(entry)
        self._folder.save()
        return entry

    def _start_once(self, spec: dict[str, Any]) -> str:
        """A run whose start was not journaled (the response was lost) is found by its name."""
        for run in self._gateway.get("/api/runs", limit=20):
            if run["name"] == spec["name"] and run["state"] != "stopped":
                return str(run["run"])
        return str(self._gateway.post("/api/runs", spec)["run"])

    def _resume(self, entry: Entry) -> Entry:
        """Continue the interrupted run if the arena still has it; else start a new one."""
        try:
            state = self._retried(lambda: self._gateway.get(f"/api/runs/{entry.run}"))["state"]
        except Refused as error:
            if error.status != 404:
                raise
            state = "stopped"
        if state != "stopped":
            entry.resumed = True
            if state == "paused":
                self._retried(lambda: self._gateway.post("/api/simulation/resume", run=entry.run))
            return entry
        self._folder.journal.entries.remove(entry)
        return self._start(entry.variant, entry.seed)

    def _wait(self, run: str, progress: Progress) -> dict[str, Any]:
        """Wait until every task has a stored result of every scheduler."""

        def watch(processed: int, note: str) -> None:
            self._report(replaced(progress, processed=processed, note=note))

        return wait_until_complete(self._gateway, run, watch, self._pause)

    def _retried(self, request: Callable[[], Any]) -> Any:
        return retry_while_unavailable(request, self._pause)

    def _pause(self, seconds: float = POLL_SECONDS) -> None:
        if self._stopping.wait(seconds):
            raise Interrupted("interrupted")


def finish(folder: Folder) -> None:
    """All runs are done: write what the report needs."""
    folder.merge()
    facts = provenance.describe(folder.journal)
    replace_text(folder.path / "provenance.json", json.dumps(facts, indent=1) + "\n")
