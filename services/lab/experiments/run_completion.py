"""Waits until a run is complete: every task has a stored result of every scheduler."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from services.lab.experiments.declaration import ExperimentError
from shared.runtime.gateway_client import GatewayClient, Pause, retry_while_unavailable

POLL_SECONDS = 0.25
# Without progress for this long, the reason is shown.
STALLED_SECONDS = 30.0


def wait_until_complete(
    gateway: GatewayClient, run: str, watch: Callable[[int, str], None], pause: Pause
) -> dict[str, Any]:
    """The record of the completed run. `watch` gets the tasks processed so far, and why there is no
    progress, if so."""

    def retried(request: Callable[[], Any]) -> Any:
        return retry_while_unavailable(request, pause)

    processed, last_progress = -1, time.monotonic()
    while True:
        status = retried(lambda: gateway.get("/api/status", run=run))
        if status["tasks_processed"] != processed:
            processed, last_progress = status["tasks_processed"], time.monotonic()
        stalled = time.monotonic() - last_progress >= STALLED_SECONDS
        watch(processed, why_stalled(status) if stalled else "")
        if status["state"] == "stopped":
            raise ExperimentError(f"run {run} was stopped by another client")
        for name, suspension in (status.get("suspended") or {}).items():
            raise ExperimentError(f"run {run}: {name} keeps failing: {suspension['reason']}")
        if status["state"] == "completed":
            return dict(retried(lambda: gateway.get(f"/api/runs/{run}")))
        pause(POLL_SECONDS)


def why_stalled(status: dict[str, Any]) -> str:
    """The state of the run, and the consumer with the largest lag."""
    lag = status.get("lag") or {}
    worst = max(lag, key=lambda name: lag[name], default=None)
    behind = f"; {worst} is {lag[worst]:,} messages behind" if worst and lag[worst] else ""
    return f"no progress for a while: the run is {status['state']}{behind}"
