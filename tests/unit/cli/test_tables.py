"""Tables on narrow terminals and in pipes: columns are left out, values are never cut."""

from __future__ import annotations

import time
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.main import app
from tests.unit.cli.terminal import in_pipe, on_terminal
from tests.unit.cli.test_models import Gateway, gateway  # noqa: F401
from tests.unit.cli.test_output import standing

RUN = "1117-045301-6a1f"
NAMES = ("attention_agent", "least_loaded", "round_robin", "my_own_scheduler_of_a_long_name")
REASON = "decisions of another run than the one of its subject; the worker is older than the run"


def run(number: int) -> dict[str, Any]:
    workload = {"preset": "documented", "source": "generated"}
    spec = {"tasks": 1_000_000, "pace": "max", "seed": 1_234_567_890, "workload": workload}
    return {
        "run": f"{RUN[:-1]}{number}", "name": "a night with the new cluster", "state": "completed",
        "created_at": time.time() - 90_000, "spec": spec,
    }  # fmt: skip


@pytest.fixture
def arena(gateway: Gateway) -> Gateway:  # noqa: F811
    gateway.respond("/api/runs", [run(number) for number in range(3)])
    makespan = 1_234_567.8
    schedulers = {name: standing(makespan=makespan, avg_turnaround=54_321.987) for name in NAMES}
    health = {"status": "ok", "services": [], "missing": []}
    status = {"run": RUN, "state": "running", "tasks_sent": 1, "tasks_processed": 1}
    bus = {"schedulers": schedulers, "lag": {"scheduler-greedy": 0}, "rejected_by": {}}
    gateway.respond("/api/health", health)
    gateway.respond("/api/status", {**status, **bus})
    letter = {"sequence": 17, "at": time.time(), "service": "simulator", "reason": REASON}
    letter |= {"subject": f"decisions.{RUN}.least_loaded", "size": 12_345}
    gateway.respond("/api/rejected", {"letters": [letter], "next_before": None})
    return gateway


@pytest.mark.parametrize("columns", [80, 60])
def test_a_narrow_terminal_shows_complete_ids_names_and_numbers(
    arena: Gateway, columns: int
) -> None:
    runs = on_terminal(columns, "run", "list")
    assert all(run(number)["run"] in runs for number in range(3))
    assert runs.count("completed") == 3
    race = on_terminal(columns, "status")
    assert all(name in race for name in NAMES)
    assert race.count("54,321.987") == 4
    letters = on_terminal(columns, "rejected", "list")
    assert f"decisions.{RUN}.least_loaded" in letters
    assert "too narrow for: " in runs
    assert "…" not in runs + race + letters


def test_prose_is_folded_between_words_before_a_column_is_left_out(arena: Gateway) -> None:
    letters = on_terminal(120, "rejected", "list")
    assert "too narrow" not in letters
    assert REASON not in letters
    assert all(word in letters for word in REASON.split())


def test_a_wide_terminal_has_every_column(arena: Gateway) -> None:
    runs = on_terminal(160, "run", "list")
    assert "too narrow" not in runs
    assert "1234567890" in runs


def test_a_pipe_gets_complete_lines_whatever_columns_says(arena: Gateway) -> None:
    rows = [line.split("  ") for line in in_pipe("run", "list").splitlines()]
    assert [row[0] for row in rows] == ["run", *(run(n)["run"] for n in range(3))]
    for shown in rows[1:]:
        cells = [cell.strip() for cell in shown if cell.strip()]
        assert cells[1:3] == ["a night with the new cluster", "completed"]
        assert cells[4:] == ["1,000,000", "max", "documented", "1234567890"]
    assert REASON in in_pipe("rejected", "list")
    race = in_pipe("status")
    assert race.count("1,234,567.8") == 4
    assert f"run {RUN}: running, 1 tasks sent, 1 finished by all\n" in race


def test_status_says_whom_nats_refuses_and_what_else_is_missing(arena: Gateway) -> None:
    refused = {"client": "scheduler eft", "user": "scheduler", "address": "10.0.0.7"}
    missing = ["scheduler eft", "simulator"]
    health = {"status": "degraded", "services": [], "missing": missing, "refused": [refused]}
    arena.respond("/api/health", health)
    result = CliRunner().invoke(app, ["status"])
    assert result.exit_code == 1
    assert "refused: scheduler eft: NATS refuses its user scheduler" in result.stdout
    assert "missing: simulator" in result.stdout
    assert "missing: scheduler eft" not in result.stdout
