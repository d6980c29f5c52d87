"""Finds how much of something a target needs, with a run of the arena for each value that is tried.

The name of a run follows from the question. So a search that is repeated, or was interrupted, uses
the runs that exist already.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from services.lab.capacity.question import Target, Variation
from services.lab.capacity.search import Answer, search
from shared.domain.spec import RunSpec
from shared.domain.spec_paths import changed_spec
from shared.errors import ArenaError, SpecError
from shared.runtime.gateway_client import GatewayClient, Pause, retry_while_unavailable

POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Trial:
    """A value that was tried."""

    value: int
    figure: float
    met: bool
    run: str


@dataclass(frozen=True, slots=True)
class Origin:
    """What is varied: a spec, or a run from a task on."""

    spec: RunSpec
    run: str | None = None
    at: int = 0


class CapacitySearch:
    def __init__(
        self,
        gateway: GatewayClient,
        origin: Origin,
        variation: Variation,
        target: Target,
        scheduler: str,
        report: Callable[[Trial], None] = lambda trial: None,
        pause: Pause = time.sleep,
    ) -> None:
        self._gateway = gateway
        self._origin = origin
        self._variation = variation
        self._target = target
        self._scheduler = scheduler
        self._report = report
        self._pause = pause
        self.trials: dict[int, Trial] = {}
        # An invalid value is reported before the first run.
        ends = (variation.values[0], variation.values[-1])
        for spec in [self._spec(value) for value in ends]:
            if spec.tasks is None:
                raise SpecError(["tasks: a capacity search needs runs that end; give a number"])

    def answer(self) -> Answer:
        return search(self._variation.values, self._meets)

    def _meets(self, value: int) -> bool:
        run = self._find(value) or self._start(value)
        self._wait_for(run)
        first = self._origin.at if self._origin.run else 0
        answer = self._get(f"/api/runs/{run}/figures", first=first)
        figure = self._target.value(answer["schedulers"][self._scheduler])
        trial = Trial(value, figure, self._target.is_met(figure), run)
        self.trials[value] = trial
        self._report(trial)
        return trial.met

    def _changes(self, value: int) -> list[str]:
        """One scheduler and no pauses: nothing else matters for the answer."""
        return [f"schedulers={self._scheduler}", "pace=max", self._variation.change(value)]

    def _spec(self, value: int) -> RunSpec:
        spec = changed_spec(self._origin.spec, self._changes(value))
        return spec.model_copy(update={"name": f"capacity {self._key(spec)}"})

    def _key(self, spec: RunSpec) -> str:
        """The same for the same question."""
        nameless = spec.model_copy(update={"name": ""}).model_dump_json()
        text = f"{nameless} {self._origin.run} {self._origin.at}"
        return blake2b(text.encode(), digest_size=8).hexdigest()

    def _find(self, value: int) -> str | None:
        name = self._spec(value).name
        for run in self._get("/api/runs", search=name.lower(), limit=100):
            if run["name"] == name and run["state"] != "stopped":
                return str(run["run"])
        return None

    def _start(self, value: int) -> str:
        spec, origin = self._spec(value), self._origin
        if origin.run is None:
            return str(self._gateway.post("/api/runs", spec.model_dump(mode="json"))["run"])
        changes = [*self._changes(value), f"name={spec.name}"]
        request = {"at": origin.at, "changes": changes}
        return str(self._gateway.post(f"/api/runs/{origin.run}/fork", request)["run"])

    def _wait_for(self, run: str) -> None:
        while True:
            status = self._get("/api/status", run=run)
            if status["state"] == "completed":
                return
            if status["state"] != "running":
                raise ArenaError(f"run {run} is {status['state']}: resume it, or search again")
            if status.get("suspended"):
                reasons = "; ".join(each["reason"] for each in status["suspended"].values())
                raise ArenaError(f"{self._scheduler} is suspended in run {run}: {reasons}")
            self._pause(POLL_SECONDS)

    def _get(self, path: str, **parameters: Any) -> Any:
        return retry_while_unavailable(lambda: self._gateway.get(path, **parameters), self._pause)
