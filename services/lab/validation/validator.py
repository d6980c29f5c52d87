"""Runs every workload for real, several times, and in simulation, and compares them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from services.lab.calibration.refine import RealResult, results_of_run
from services.lab.experiments.runner import Interrupted
from services.lab.validation.agreement import Comparison, Outcome
from services.lab.validation.run_results import (
    TaskTime,
    ValidationFailed,
    outcomes,
    task_times,
)
from services.lab.validation.workloads import Workload
from shared.domain.spec import RunSpec
from shared.runtime.gateway_client import GatewayClient, retry_while_unavailable
from shared.store.client import Store

POLL_SECONDS = 0.25
# A run without progress for this long has a problem.
STALLED_SECONDS = 120.0


@dataclass(slots=True)
class Compared:
    workload: Workload
    comparison: Comparison
    runs: list[str]  # the real ones
    times: list[list[TaskTime]] = field(default_factory=list)  # of each real run


class Validator:
    def __init__(
        self,
        gateway: GatewayClient,
        store: Store,
        report: Callable[[str], None],
        stopping: threading.Event,
    ) -> None:
        self._gateway, self._store = gateway, store
        self._report, self._stopping = report, stopping

    def compare(
        self, workloads: Iterable[Workload], repeats: int, seconds: float
    ) -> list[Compared]:
        """Compare the workloads one by one; none is begun after that many seconds."""
        began = time.monotonic()
        compared: list[Compared] = []
        for workload in workloads:
            if compared and time.monotonic() - began > seconds:
                break
            compared.append(self._compare(workload, repeats))
        return compared

    def measure(self, workloads: Iterable[Workload]) -> list[RealResult]:
        """Run each workload for real; returns the results of all."""
        results: list[RealResult] = []
        for workload in workloads:
            self._report(f"calibration in a real run {workload.number + 1} ({workload.load:g})")
            run, _ = self._run(workload.real)
            results += results_of_run(self._store, run)
        return results

    def _compare(self, workload: Workload, repeats: int) -> Compared:
        number = workload.number + 1
        self._report(f"workload {number} (load {workload.load:g}): simulated")
        _, simulated = self._run(workload.simulated)
        runs, real, times = [], [], []
        for repeat in range(repeats):
            self._report(f"workload {number} (load {workload.load:g}): real run {repeat + 1}")
            run, measured = self._run(workload.real)
            runs.append(run)
            real.append(measured)
            times.append(task_times(self._store, run, workload.real.without_noise))
        return Compared(workload, Comparison(real, simulated), runs, times)

    def _run(self, spec: RunSpec) -> tuple[str, dict[str, Outcome]]:
        data = spec.model_dump(mode="json")
        run = str(self._gateway.post("/api/runs", data)["run"])
        try:
            self._wait(run)
        except BaseException:
            self._gateway.post("/api/simulation/stop", run=run)
            raise
        return run, outcomes(self._store, run, spec)

    def _wait(self, run: str) -> None:
        processed, since = -1, time.monotonic()
        while True:
            status = retry_while_unavailable(
                lambda: self._gateway.get("/api/status", run=run), self._pause
            )
            if status["state"] == "completed":
                return
            if status["state"] == "stopped":
                raise ValidationFailed(f"run {run} was stopped; `hybrid tail` and the log say why")
            for name, suspension in (status.get("suspended") or {}).items():
                raise ValidationFailed(f"run {run}: {name} keeps failing: {suspension['reason']}")
            if status["tasks_processed"] != processed:
                processed, since = status["tasks_processed"], time.monotonic()
            elif time.monotonic() - since > STALLED_SECONDS:
                raise ValidationFailed(
                    f"run {run}: no result for {STALLED_SECONDS:g} s; is an executor running?"
                )
            self._pause(POLL_SECONDS)

    def _pause(self, seconds: float) -> None:
        if self._stopping.wait(seconds):
            raise Interrupted("interrupted")
