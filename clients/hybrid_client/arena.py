"""The arena and its runs, as seen through the gateway."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pyarrow import csv
from tqdm import tqdm

from hybrid_client.advice import Advice
from shared.errors import ArenaError
from shared.runtime.gateway_client import GatewayClient, retry_while_unavailable

DEFAULT_URL = "http://127.0.0.1:8000"
POLL_SECONDS = 0.2
ADVICE_BAR = "{desc}: {percentage:3.0f}% |{bar}| {elapsed}{postfix}"
# The first columns of a race.
FIRST_COLUMNS = ["results", "avg_turnaround", "avg_wait", "avg_time", "avg_energy", "avg_cost"]


class RunFailed(ArenaError):
    """A run that was waited for will not be completed."""


class AdviceFailed(ArenaError):
    """There will be no answer to a request for advice."""


class Arena:
    def __init__(
        self, url: str | None = None, token: str | None = None, authority: Path | None = None
    ) -> None:
        """Without an address, that of HYBRID_URL, or this machine; without a token, that of
        HYBRID_GATEWAY_TOKEN. `authority`: the CA of an arena with TLS."""
        address = url or os.environ.get("HYBRID_URL") or DEFAULT_URL
        secret = os.environ.get("HYBRID_GATEWAY_TOKEN", "") if token is None else token
        self.gateway = GatewayClient(address, secret, authority)

    def close(self) -> None:
        """Close the connection; a notebook need not."""
        self.gateway.close()

    def __enter__(self) -> Arena:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Arena({self.gateway.url!r})"

    def start(self, spec: dict[str, Any] | None = None, **fields: Any) -> Run:
        """Start a run of this spec; `fields` are fields of it: `start(tasks=1000, seed=7)`."""
        record = self.gateway.post("/api/runs", {**(spec or {}), **fields})
        return Run(self, record["run"])

    def run(self, run: str) -> Run:
        """A run by its id."""
        self.gateway.get(f"/api/runs/{run}")  # raises if there is none
        return Run(self, run)

    def runs(self, limit: int = 20) -> pd.DataFrame:
        """The newest runs, by id."""
        rows = self.gateway.get("/api/runs", limit=limit)
        frame = pd.DataFrame(
            [
                {
                    **{name: row[name] for name in ("run", "name", "state", "tags")},
                    "started": pd.to_datetime(row["created_at"], unit="s", utc=True),
                    **{name: row["spec"][name] for name in ("tasks", "pace", "seed")},
                }
                for row in rows
            ],
            columns=["run", "name", "state", "tags", "started", "tasks", "pace", "seed"],
        )
        return frame.set_index("run")

    def schedulers(self) -> pd.DataFrame:
        """The schedulers that are deployed, by name."""
        rows = self.gateway.get("/api/schedulers")
        columns = ["name", "deployed", "description"]
        return pd.DataFrame(rows, columns=columns).set_index("name")

    def advise(
        self, jobs: pd.DataFrame | None = None, *, progress: bool = True, **question: Any
    ) -> Advice:
        """Ask which scheduler to use, and wait for the answer.

        `jobs`: a trace, with the columns that docs/traces.md names; without it, jobs are generated.
        `question`: fields of `POST /api/advice`, such as `platform`, `preset`, `load`, `objective`,
        `schedulers`, `tasks`, `budget_minutes`. The arena must have the lab, as `hybrid up` does.
        """
        trace = {} if jobs is None else {"trace": jobs.to_csv(index=False)}
        name = self.gateway.post("/api/advice", {**trace, **question})["name"]
        with tqdm(total=1.0, desc=name, bar_format=ADVICE_BAR, disable=not progress) as bar:
            while True:
                asked = retry_while_unavailable(lambda: self.gateway.get("/api/advice"))
                status = next((each for each in asked if each["name"] == name), None)
                if status is None or status["state"] == "failed":
                    raise AdviceFailed(status["text"] if status else f"{name} is no longer there")
                bar.set_postfix_str(status["text"] or status["state"])
                bar.update(status["share"] - bar.n)
                if status["state"] == "done":
                    return Advice(self.gateway.get(f"/api/reports/{name}/report.json"))
                time.sleep(POLL_SECONDS)


class Run:
    def __init__(self, arena: Arena, run: str) -> None:
        self.arena, self.id = arena, run
        self._gateway = arena.gateway

    def __repr__(self) -> str:
        return f"<run {self.id}, {self.state}>"

    def detail(self) -> dict[str, Any]:
        """All that the gateway says of the run: its spec, standings, bound and load."""
        record: dict[str, Any] = self._gateway.get(f"/api/runs/{self.id}")
        return record

    @property
    def state(self) -> str:
        return str(self.detail()["state"])

    @property
    def spec(self) -> dict[str, Any]:
        return dict(self.detail()["spec"])

    def wait(self, progress: bool = True) -> Run:
        """Wait until every scheduler has a stored result for every task."""
        total = self.spec["tasks"]
        if total is None:
            raise RunFailed(f"run {self.id} has no last task: give it `tasks`, or stop it")
        with tqdm(total=total, desc=f"run {self.id}", unit="tasks", disable=not progress) as bar:
            while True:
                status = retry_while_unavailable(
                    lambda: self._gateway.get("/api/status", run=self.id)
                )
                waiting = status.get("pretraining")
                bar.set_postfix_str(f"pre-training {', '.join(waiting)}" if waiting else "")
                bar.update(min(status["tasks_processed"], total) - bar.n)
                if status["state"] == "completed":
                    bar.update(total - bar.n)
                    return self
                self._check_it_can_end(status)
                time.sleep(POLL_SECONDS)

    def _check_it_can_end(self, status: dict[str, Any]) -> None:
        if status["state"] == "stopped":
            raise RunFailed(f"run {self.id} was stopped")
        if status.get("suspended") and not status["competing"]:
            raise RunFailed(f"every scheduler of run {self.id} keeps failing")

    def race(self) -> pd.DataFrame:
        """The standing of each scheduler, best mean turnaround first."""
        standings = self.detail()["schedulers"]
        frame = pd.DataFrame.from_dict(standings, orient="index").rename_axis("scheduler")
        columns = [name for name in FIRST_COLUMNS if name in frame]
        others = [name for name in frame if name not in columns]
        return frame[[*columns, *others]].sort_values("avg_turnaround")

    def results(self, scheduler: str | None = None) -> pd.DataFrame:
        """Every decision and its result, with the task's features; of one scheduler, or of all."""
        path = f"/api/runs/{self.id}/ledger.csv"
        body = b"".join(self._gateway.download(path, scheduler=scheduler))
        # Numbers have the bits that the simulator computed.
        frame: pd.DataFrame = csv.read_csv(io.BytesIO(body)).to_pandas()
        return frame

    def progress(self, measure: str = "turnaround") -> pd.DataFrame:
        """The total of turnaround, time, energy or cost of each scheduler (column) after so many
        tasks (index)."""
        body = self._gateway.get(f"/api/runs/{self.id}/progress")
        series = {
            name: pd.Series(each[f"total_{measure}"], index=each["tasks"])
            for name, each in body["schedulers"].items()
        }
        return pd.DataFrame(series).rename_axis("tasks")

    def fork(
        self,
        at: int,
        changes: Mapping[str, Any] | None = None,
        takes_over: Mapping[str, str] | None = None,
    ) -> Run:
        """A run that shares everything before task `at` with this one, and goes on from there with
        changed fields of the spec: `fork(500, {"cluster.gpus": 5})`. `takes_over`: by scheduler
        that this run does not have, the one whose cluster it continues. See docs/whatif.md."""
        request = {
            "at": at,
            "changes": [f"{path}={json.dumps(value)}" for path, value in (changes or {}).items()],
            "takes_over": dict(takes_over or {}),
        }
        record = self._gateway.post(f"/api/runs/{self.id}/fork", request)
        return Run(self.arena, record["run"])

    def compare(self, other: Run | None = None, first: int | None = None) -> pd.DataFrame:
        """The figures of each scheduler here and (`..._other`) in another run, from task `first`
        on. A fork is compared with its parent, and from its first own task on, unless given.
        `different`: how many tasks finish at another time."""
        body = self._gateway.get(
            f"/api/runs/{self.id}/comparison", other=other.id if other else None, first=first
        )
        rows = [
            {
                "scheduler": name,
                **(each["figures"] or {}),
                **{f"{key}_other": value for key, value in (each["other"] or {}).items()},
                "different": each["different"],
                "first_different": each["first_different"],
            }
            for name, each in body["schedulers"].items()
        ]
        counts = {"different": "Int64", "first_different": "Int64"}  # may be missing
        return pd.DataFrame(rows).set_index("scheduler").astype(counts)

    def save_trace(self, path: str | Path, scheduler: str | None = None) -> Path:
        """What every device did and when, to look at in ui.perfetto.dev."""
        target = Path(path)
        with target.open("wb") as file:
            for piece in self._gateway.download(
                f"/api/runs/{self.id}/trace.json", scheduler=scheduler
            ):
                file.write(piece)
        return target

    def pause(self) -> Run:
        return self._control("pause")

    def resume(self) -> Run:
        return self._control("resume")

    def stop(self) -> Run:
        return self._control("stop")

    def _control(self, action: str) -> Run:
        self._gateway.post(f"/api/simulation/{action}", run=self.id)
        return self
