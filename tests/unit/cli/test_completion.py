"""Waiting until a run is complete."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from services.cli.runs.completion import wait_for
from shared.errors import Unavailable
from shared.runtime.gateway_client import GatewayClient, Refused


class Restarted(GatewayClient):
    """A gateway that is unavailable at times."""

    def __init__(self, *answers: Any) -> None:
        super().__init__("http://127.0.0.1:1")
        self.answers = list(answers)
        self.requests: list[str] = []

    def get(self, path: str, **parameters: Any) -> Any:
        self.requests.append(path)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def status(state: str) -> dict[str, Any]:
    return {"state": state, "tasks_processed": 7}


def test_a_gateway_that_is_away_for_a_while_does_not_end_the_wait() -> None:
    away, starting = Unavailable("no arena answers"), Refused("NATS does not answer", 503)
    busy = Refused("calls come too fast", 429, {"Retry-After": "3"})
    completed = {"run": "r1", "state": "completed"}
    answers = [status("running"), away, starting, busy, status("completed"), away, completed]
    pauses: list[float] = []
    with Restarted(*answers) as gateway:
        assert wait_for(gateway, "r1", 9, quiet=True, pause=pauses.append) == completed
    assert gateway.requests == ["/api/status"] * 5 + ["/api/runs/r1"] * 2
    assert 3 in pauses


def test_a_run_that_does_not_exist_or_was_stopped_ends_the_wait() -> None:
    with Restarted(Refused("no run r1", 404)) as gateway, pytest.raises(Refused):
        wait_for(gateway, "r1", 9, quiet=True)
    with Restarted(status("stopped")) as gateway, pytest.raises(typer.Exit):
        wait_for(gateway, "r1", 9, quiet=True)
