"""A whole arena, started the way a user does it, and what a user can see of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

from deploy.local.arena import find
from services.cli.settings import settings_of
from shared.domain.schedulers import BUILT_IN, LEARNERS
from shared.runtime.tls import client_context
from tests.chaos.checker import check
from tests.chaos.clickhouse import ClickHouse
from tests.chaos.findings import Findings
from tests.counting import COUNTED
from tests.waiting import PATIENCE

HYBRID = str(Path(sys.executable).parent / "hybrid")

# The schedulers that do not learn: what they decide is the same every time.
RULES = tuple(sorted(set(BUILT_IN) - set(LEARNERS)))

# For `learning` of a spec: small enough to learn in a test, large enough to learn something.
QUICK = {"agent": {"pretrain_steps": 400, "hidden": 64}}

# Everything of a result but its run and how it was batched; floats by their bits.
FINGERPRINT = """
    SELECT scheduler, count() AS results, uniqExact(task_id) AS tasks,
           groupBitXor(cityHash64(* EXCEPT (run, batch))) AS fingerprint
    FROM scheduler_results FINAL WHERE run = '{run}' GROUP BY scheduler ORDER BY scheduler
"""


def hybrid(
    *arguments: str, timeout: float = PATIENCE, **options: Any
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HYBRID, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "COLUMNS": "200", "HYBRID_URL": ""} | options.pop("env", {}),
        **options,
    )


class ArenaProcess:
    """`hybrid up --idle` in a folder of its own, on free ports."""

    source: Path | None = None  # the folder of the program, if it is another version's
    options: tuple[str, ...] = ()  # of `hybrid up`, besides those of the constructor

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self._errors = (folder.parent / f"{folder.name}.stderr").open("w+")
        self._process = subprocess.Popen(
            [
                *(HYBRID, "up", "--json", "--auto-ports", "--data-dir", str(folder)),
                *self.options,
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={"HYBRID_REPORTS_DIR": str(folder.parent / "reports")}
            | os.environ
            | ({"PYTHONPATH": str(self.source)} if self.source else {}),
        )
        first = self._process.stdout.readline()
        if not first:
            self._errors.seek(0)
            raise AssertionError(f"hybrid up failed: {self._errors.read()}")
        self.announced = json.loads(first)
        self.http = httpx.Client(base_url=self.announced["url"], timeout=60, verify=self._trusted())

    def _trusted(self) -> ssl.SSLContext | bool:
        """With --tls the arena's own authority."""
        running = find(self.folder)
        shown = running.certificates if running else None
        return client_context(shown.authority) if shown else True

    def stop(self) -> int:
        self.http.close()
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(PATIENCE)
        self._process.stdout.close()
        self._errors.close()
        return code

    def start_run(self, **spec: Any) -> str:
        """A run of the rules, unless the spec names schedulers."""
        spec.setdefault("schedulers", RULES)
        answer = self.http.post("/api/runs", json=spec)
        assert answer.status_code == 201, answer.text
        run: str = answer.json()["run"]
        return run

    def status(self, run: str) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get("/api/status", params={"run": run}).json()
        return found

    def wait_for(self, run: str, condition: Any, timeout: float = PATIENCE) -> dict[str, Any]:
        """The run's status, once it meets the condition; processes may be down meanwhile."""
        deadline = time.monotonic() + timeout
        status: Any = None
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.HTTPError):
                answer = self.http.get("/api/status", params={"run": run})
                if answer.is_success:
                    status = answer.json()
                    if condition(status):
                        return dict(status)
            time.sleep(0.1)  # each request costs the arena a query
        raise AssertionError(f"not reached in {timeout:.0f} s; the last status: {status}")

    def complete(self, run: str, timeout: float = PATIENCE) -> dict[str, Any]:
        return self.wait_for(run, lambda status: status["state"] == "completed", timeout)

    def pause(self, run: str) -> dict[str, Any]:
        """The run's status, once it is paused and every task that was sent has its results."""
        self.http.post("/api/simulation/pause", params={"run": run}).raise_for_status()
        steady = [0, 0]  # tasks sent, and how many requests in a row that is all there is

        def at_rest(status: dict[str, Any]) -> bool:
            """A batch may have been on its way when the run was paused."""
            sent = status["tasks_sent"]
            done = status["state"] == "paused" and status["tasks_processed"] == sent
            steady[:] = [sent, steady[1] + 1 if done and steady[0] == sent else 0]
            return steady[1] >= 20

        return self.wait_for(run, at_rest)

    def resume(self, run: str) -> None:
        self.http.post("/api/simulation/resume", params={"run": run}).raise_for_status()

    def sql(self, query: str) -> list[dict[str, Any]]:
        """What `hybrid sql --json` prints, without the second that its process takes."""
        running = find(self.folder)
        assert running is not None, f"no arena in {self.folder}"
        settings = settings_of(running)
        answer = httpx.post(
            settings.clickhouse_url,
            content=query.encode(),
            params={"database": settings.clickhouse_database, "default_format": "JSONEachRow"},
            headers={"X-ClickHouse-User": "analyst", "X-ClickHouse-Key": running.secrets.analyst},
            timeout=PATIENCE,
            verify=self._trusted(),
        )
        assert answer.is_success, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    def counted(self, run: str) -> list[dict[str, Any]]:
        return self.sql(COUNTED.format(run=run))

    def fingerprints(self, run: str) -> list[dict[str, Any]]:
        return self.sql(FINGERPRINT.format(run=run))

    def findings(self, run: str, reference: str) -> Findings:
        """Check a run that is over against an undisturbed one of the same spec."""
        state = f"SELECT state FROM runs FINAL WHERE run = '{run}'"
        # The run book has the new state before the store does.
        self.wait_for(run, lambda _: self.sql(state) == [{"state": "completed"}])
        running = find(self.folder)
        settings, password = settings_of(running), running.secrets.analyst
        tables = ClickHouse(
            settings.clickhouse_url, "analyst", password, settings.clickhouse_database
        )
        try:
            return check(tables, run, reference=reference, rules=RULES)
        finally:
            tables.close()

    def logged(self, text: str) -> list[str]:
        """Lines of its processes' logs that have this in them, however it is written."""
        return [
            f"{file.name}: {line}"
            for file in sorted((self.folder / "logs").glob("*.log"))
            for line in file.read_text(errors="replace").splitlines()
            if text.lower() in line.lower()
        ]

    def processes(self, fragment: str) -> list[psutil.Process]:
        """The arena's processes whose command line has this in it."""
        found = []
        for child in psutil.Process(self._process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # one that has just died
                if fragment in " ".join(child.cmdline()):
                    found.append(child)
        return found

    def kill(self, fragment: str) -> None:
        """kill -9 the newest such process."""
        self.processes(fragment)[-1].kill()

    def kill_worker(self, scheduler: str) -> None:
        workers = self.processes(f"services.scheduler scheduler-{scheduler}")
        assert workers, f"no worker of {scheduler}"
        workers[0].kill()
