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


SUSPENDED = {"reason": "PolicyError('got 1.7')", "batch": 3, "at": 0.0, "left_out": False}


def status(state: str, **change: Any) -> dict[str, Any]:
    waiting = {"pretraining": [], "learners": 0, "suspended": {}, "competing": ["greedy"]}
    return {"run": "r1", "state": state, "tasks_processed": 7, **waiting, **change}


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


def test_it_says_what_a_run_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    training = status("running", pretraining=["predictive"], learners=3)
    failing = status("running", suspended={"own": SUSPENDED})
    answers = [training, training, failing, failing, status("completed"), {"run": "r1"}]
    with Restarted(*answers) as gateway:
        wait_for(gateway, "r1", 9, quiet=False, pause=lambda _: None)
    told = capsys.readouterr().err
    assert told.count("pre-training the learners, 2 of 3 ready; waiting for predictive") == 1
    assert told.count("own is suspended in run r1: it kept failing on batch 3") == 1
    assert "hybrid run retry r1 own" in told


def test_a_run_of_which_every_scheduler_is_suspended_ends_the_wait() -> None:
    answer = status("running", suspended={"own": SUSPENDED}, competing=[])
    with Restarted(answer) as gateway, pytest.raises(typer.Exit):
        wait_for(gateway, "r1", 9, quiet=True)
