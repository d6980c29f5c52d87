"""Tasks for as long as a test needs them, however slow the machine is."""

from __future__ import annotations

from typing import Any

import httpx

from tests.containers.cluster import Cluster
from tests.waiting import until


class Load:
    """A run, and the same one again whenever it ends before the test does."""

    def __init__(self, cluster: Cluster, **spec: Any) -> None:
        self._cluster = cluster
        self._spec = spec
        self.runs = [cluster.start_run(**spec)]

    def wait_for_more(self, counter: str, more: int = 1) -> None:
        """Until this counter of the run's status has grown, in a run that is not over then."""
        run, tasks = self.runs[-1], self._spec["tasks"]
        goal = min(self._cluster.status(run)[counter] + more, tasks)
        status = self._cluster.wait_for(run, lambda status: status[counter] >= goal)
        if status[counter] == tasks:
            self.runs.append(until(self._start, "another run", every=1))

    def _start(self) -> str:
        """Empty while the gateway or one of the run's schedulers is away."""
        try:
            answer = self._cluster.http.post("/api/runs", json=self._spec)
        except httpx.HTTPError:
            return ""
        return str(answer.json()["run"]) if answer.is_success else ""

    def complete(self) -> list[str]:
        for run in self.runs:
            self._cluster.complete(run)
        return self.runs
