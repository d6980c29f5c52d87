"""What Tab completes: the shell asks the program itself."""

from __future__ import annotations

import socket
import time

import pytest
from typer.testing import CliRunner

from services.cli.main import app
from services.cli.shell_completion import TIMEOUT_SECONDS
from tests.unit.cli.test_models import Gateway, gateway  # noqa: F401

WORKERS = {"greedy": "", "my_own": "", "my_learner": "my_learner"}


@pytest.fixture
def arena(gateway: Gateway) -> Gateway:  # noqa: F811
    runs = [
        {"run": "1117-045301-6a1f", "name": "night", "state": "running"},
        {"run": "1116-081502-ab12", "name": "", "state": "stopped"},
    ]
    gateway.respond("/api/runs", runs)
    reports = [
        {"scheduler": name, "learner": learner, "description": f"the rule of {name}"}
        for name, learner in WORKERS.items()
    ]
    reports += [{"scheduler": "", "learner": "", "description": ""}, reports[0]]
    gateway.respond("/api/health", {"services": reports})
    return gateway


def completed(line: str) -> list[str]:
    """As bash asks: the words so far, the last of which is incomplete."""
    words = line.split(" ")
    environment = {
        "_HYBRID_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    result = CliRunner().invoke(app, [], prog_name="hybrid", env=environment)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout.split()


def test_commands_complete() -> None:
    assert completed("hybrid st") == ["status"]
    assert completed("hybrid run st") == ["start", "stop"]


@pytest.mark.parametrize(
    "line",
    ["run stop 1117", "status 1117", "run objective 1117", "model list --run 1117",
     "run retry 1117", "trace replay jobs.swf --resume 1117"],
)  # fmt: skip
def test_runs_complete(arena: Gateway, line: str) -> None:
    assert completed(f"hybrid {line}") == ["1117-045301-6a1f"]
    assert set(completed(f"hybrid {line[:-2]}")) == {"1117-045301-6a1f", "1116-081502-ab12"}


def test_schedulers_complete_also_in_a_list(arena: Gateway) -> None:
    assert completed("hybrid trace replay a.swf --schedulers g") == ["greedy"]
    assert completed("hybrid run leave-out 1117-045301-6a1f g") == ["greedy"]
    words = completed("hybrid trace replay a.swf --schedulers greedy,my_")
    assert sorted(words) == ["greedy,my_learner", "greedy,my_own"]


def test_learners_complete_with_those_of_plug_ins(arena: Gateway) -> None:
    assert completed("hybrid model show my_") == ["my_learner"]
    assert completed("hybrid model show hybrid") == ["hybrid_ml"]


def test_what_comes_with_the_program_completes_without_an_arena() -> None:
    assert completed("hybrid run start --preset gpu") == ["gpu_friendly"]
    assert completed("hybrid platform show dg") == ["dgx"]
    assert completed("hybrid experiment run shi") == ["shift"]


def test_without_an_arena_nothing_completes_and_nothing_is_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HYBRID_URL", "http://127.0.0.1:1")
    assert completed("hybrid run stop 11") == []


def test_an_arena_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HYBRID_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        began = time.monotonic()
        assert completed("hybrid run stop 11") == []
    assert time.monotonic() - began < TIMEOUT_SECONDS + 25  # thirty without the limit
