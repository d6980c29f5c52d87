"""The `hybrid` command without an arena: help, and errors that name the way out."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deploy.local.arena import Ports
from services.cli.main import app
from shared import logs

NOWHERE = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In an empty folder, with an environment that says nothing of an arena."""
    monkeypatch.chdir(tmp_path)
    for name in ("HYBRID_URL", "HYBRID_GATEWAY_TOKEN", "HYBRID_NATS_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HYBRID_NATS_URL", "nats://127.0.0.1:1")
    monkeypatch.setenv("HYBRID_CLICKHOUSE_URL", NOWHERE)
    # Loggers keep the stderr they were made with, and the runner's is closed after the command.
    monkeypatch.setattr(logs, "set_up", lambda *args, **context: None)


def hybrid(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def plain(text: str) -> str:
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", "", text).split())


def failed(*arguments: str, code: int = 1) -> str:
    """What the command says on stderr as it fails; no stack trace, and nothing on stdout."""
    result = hybrid(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert result.stdout == ""
    return plain(result.stderr)


@pytest.mark.parametrize(
    ("command", "mentions"),
    [
        ((), "tail"),
        (("up",), "--scale"),
        (("status",), "--data-dir"),
        (("run",), "resume"),
        (("run", "start"), "--preset"),
        (("run", "list"), "--limit"),
        (("run", "pause"), "--url"),
        (("run", "resume"), "--url"),
        (("run", "stop"), "--url"),
        (("rejected",), "replay"),
        (("rejected", "list"), "--subject"),
        (("rejected", "show"), "--rows"),
        (("rejected", "replay"), "--all"),
        (("rejected", "purge"), "--yes"),
        (("sql",), "--format"),
        (("tail",), "--rows"),
    ],
)
def test_every_command_has_help(command: tuple[str, ...], mentions: str) -> None:
    result = hybrid(*command, "--help")
    assert result.exit_code == 0
    assert mentions in plain(result.stdout)


def test_an_unknown_command_is_a_usage_error() -> None:
    assert "No such command 'fly'" in failed("fly", code=2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "start", "--tasks", "0"), "tasks: "),
        (("run", "start", "--pace", "fast"), "pace: must be a number of tasks per second"),
        (("run", "start", "--seed", "-1"), "seed: "),
        (("run", "start", "--preset", "hpcc"), "unknown preset 'hpcc'"),
        (("run", "start", "--spec", "missing.yaml"), "missing.yaml: cannot be read"),
        (("run", "start", "--wait"), "--wait needs a run that ends: give --tasks"),
        (("rejected", "purge"), "say which: numbers, or --service and --subject, or --all"),
        (("rejected", "replay", "3", "--all"), "say which: numbers, or --service and"),
        (("up", "--exit"), "--exit needs a run that ends"),
        (("up", "--scale", "greedy"), "expected NAME=NUMBER"),
        (("up", "--scale", "nobody=2"), "no nobody; known: "),
        (("up", "--scale", "greedy=0"), "between 1 and 64"),
        (("up", "--preset", "hpcc"), "unknown preset 'hpcc'"),
        (("status", "--data-dir", "nowhere"), "no arena runs in nowhere"),
        (("sql", "SELECT 1", "--data-dir", "nowhere"), "no arena runs in nowhere"),
        (("tail", "--data-dir", "nowhere"), "no arena runs in nowhere"),
    ],
)
def test_bad_input_is_one_line_that_says_what_to_do(arguments: tuple[str, ...], said: str) -> None:
    stderr = failed(*arguments)
    assert stderr.startswith("error: ")
    assert said in stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("run", "start"),
        ("run", "list"),
        ("run", "pause"),
        ("run", "resume", "some-run"),
        ("run", "stop"),
        ("rejected", "list"),
        ("rejected", "show", "1"),
        ("rejected", "purge", "--all", "--yes"),
    ],
)
def test_without_an_arena_a_command_says_how_to_get_one(arguments: tuple[str, ...]) -> None:
    stderr = failed(*arguments, "--url", NOWHERE)
    assert f"no arena answers at {NOWHERE}" in stderr
    assert "`hybrid up`" in stderr


def test_a_bus_that_is_away_is_named() -> None:
    assert "NATS does not answer at nats://127.0.0.1:1" in failed("tail", "tasks.>")


def test_a_clickhouse_that_is_away_is_named() -> None:
    assert f"ClickHouse does not answer at {NOWHERE}" in failed("sql", "SELECT 1")


@pytest.mark.parametrize("option", ["--port", "--nats-port", "--clickhouse-port"])
def test_a_port_in_use_names_the_option(option: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        free = Ports.free()
        names = ["--port", "--nats-port", "--clickhouse-port"]
        names.remove(option)
        arguments = [option, str(port)]
        for name, other in zip(names, (free.gateway, free.nats), strict=True):
            arguments += [name, str(other)]
        stderr = failed("up", *arguments)
    assert f"port {port}" in stderr
    assert f"choose another with {option}" in stderr
    assert "--auto-ports" in stderr


@pytest.mark.parametrize(("command", "bound"), [("--rows", "-1"), ("--count", "0")])
def test_numbers_out_of_range_are_usage_errors(command: str, bound: str) -> None:
    assert command in failed("tail", command, bound, code=2)
