"""The `hybrid` command without an arena: help, imports, and errors that say what to do."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from deploy.local.arena import Ports
from services.cli.main import COMMANDS, app, load
from shared.runtime import logs

NOWHERE = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In an empty folder, with an environment that names no arena."""
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
    """The error on stderr; no traceback, and nothing on stdout."""
    result = hybrid(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert result.stdout == ""
    return plain(result.stderr)


def every_command(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, group
    for name in getattr(group, "commands", {}):
        command = group.commands[name] if path else load(name)
        yield from every_command(command, (*path, name))


@pytest.mark.parametrize("path", [path for path, _ in every_command(get_command(app))])
def test_every_command_has_help(path: tuple[str, ...]) -> None:
    result = hybrid(*path, "--help")
    assert result.exit_code == 0
    help_text = plain(result.stdout)
    command = dict(every_command(get_command(app)))[path]
    if hasattr(command, "commands"):
        assert all(name in help_text for name in command.commands)
    else:
        assert f"hybrid {' '.join(path)}" in help_text.partition("Example")[2], "no example"
        assert all(parameter.help for parameter in command.params), "an option without help"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_overview_is_the_first_of_the_commands_own_help(name: str) -> None:
    assert load(name).help.startswith(COMMANDS[name])


HEAVY = (
    "numpy", "pyarrow", "pydantic_settings", "httpx", "nats", "faststream", "clickhouse_connect",
    "cryptography", "matplotlib", "torch", "sklearn", "onnx", "onnxruntime", "joblib", "yaml",
    "safetensors", "services.lab",
)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (("--help",), set()),
        (("status", "--url", NOWHERE), {"httpx"}),
        (("run", "list", "--url", NOWHERE), {"httpx"}),
        (("rejected", "list", "--url", NOWHERE), {"httpx"}),
    ],
)
def test_a_command_imports_no_library_that_it_does_not_need(
    arguments: tuple[str, ...], needed: set[str]
) -> None:
    program = (
        "import sys; from services.cli.main import app\n"
        "try: app(sys.argv[1:])\n"
        f"finally: print('IMPORTED', *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    command = [sys.executable, "-c", program, *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    assert set(result.stdout.partition("IMPORTED")[2].split()) == needed, result.stderr


def test_the_version_is_that_of_the_package() -> None:
    assert hybrid("--version").stdout == f"hybrid {version('hybrid-ml-scheduler')}\n"


def test_an_unknown_command_is_a_usage_error() -> None:
    assert "No such command 'fly'" in failed("fly", code=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "start", "--tasks", "0"), "tasks: "),
        (("run", "start", "--pace", "fast"), "pace: must be a number of tasks per second"),
        (("run", "start", "--seed", "-1"), "seed: "),
        (("run", "start", "--preset", "hpcc"), "unknown preset 'hpcc'"),
        (("run", "start", "--spec", "missing.yaml"), "missing.yaml: cannot be read"),
        (("run", "start", "--wait"), "--wait needs a run that ends: give --tasks"),
        (("rejected", "purge"), "numbers, or --service and --subject, or --all"),
        (("rejected", "replay", "3", "--all"), "select dead letters: numbers, or --service"),
        (("up", "--exit"), "--exit needs a run that ends"),
        (("up", "--scale", "greedy"), "expected NAME=NUMBER"),
        (("up", "--preset", "hpcc"), "unknown preset 'hpcc'"),
        (("status", "--data-dir", "nowhere"), "no arena runs in nowhere"),
        (("sql", "SELECT 1", "--data-dir", "nowhere"), "no arena runs in nowhere"),
        (("tail", "--data-dir", "nowhere"), "no arena runs in nowhere"),
    ],
)
def test_bad_input_is_one_line_that_says_what_to_do(
    arguments: tuple[str, ...], message: str
) -> None:
    stderr = failed(*arguments)
    assert stderr.startswith("error: ")
    assert message in stderr


@pytest.mark.parametrize(
    "arguments",
    [
        *("status", "run start", "run list", "run pause", "run resume some-run", "run stop"),
        *("rejected list", "rejected show 1", "rejected purge --all --yes", "model list"),
        *("model show hybrid_ml", "model export hybrid_ml --out a.pkl"),
        "model rollback hybrid_ml 1 --run some-run",
    ],
)
def test_without_an_arena_a_command_says_how_to_get_one(arguments: str) -> None:
    stderr = failed(*arguments.split(), "--url", NOWHERE)
    assert f"no arena answers at {NOWHERE}" in stderr
    assert "`hybrid up`" in stderr


def test_a_server_that_does_not_answer_is_named() -> None:
    assert "NATS does not answer at nats://127.0.0.1:1" in failed("tail", "tasks.>")
    assert f"ClickHouse does not answer at {NOWHERE}" in failed("sql", "SELECT 1")


GOOD = "from services.scheduler.policy import Policy\nclass Good(Policy):\n    name = {name!r}\n"
GOOD += "    def decide(self, tasks, spec): ...\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "no such file: mine.py"),
        ("x = 1", "mine.py: one Policy or ClusterPolicy class expected, found: none"),
        ("import no_such_module", "mine.py cannot be loaded: ModuleNotFoundError"),
        ("raise SystemExit(3)", "mine.py ended its process with 3"),
    ],
)
def test_a_scheduler_that_cannot_be_loaded_ends_up_before_anything_starts(
    content: str | None, reason: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "mine.py").write_text(content)
    stderr = failed("up", "--auto-ports", "--add", "mine.py")
    assert stderr.startswith(f"error: nothing was started: {reason}")
    assert not (tmp_path / ".hybrid").exists()


def test_a_scheduler_needs_a_name_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD.format(name="greedy"))
    stderr = failed("up", "--auto-ports", "--add", "mine.py")
    assert "mine.py is called 'greedy', as is a built-in scheduler" in stderr
    for file in ("one.py", "two.py"):
        (tmp_path / file).write_text(GOOD.format(name="mine"))
    stderr = failed("up", "--auto-ports", "--add", "one.py", "--add", "two.py")
    assert "two.py is called 'mine', as is one.py" in stderr


@pytest.mark.parametrize("option", ["--port", "--nats-port", "--clickhouse-port"])
def test_a_port_in_use_names_the_option(option: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        free = Ports.free()
        ports = {"--port": free.gateway, "--nats-port": free.nats}
        ports |= {"--clickhouse-port": free.clickhouse, option: port}
        stderr = failed("up", *(str(word) for pair in ports.items() for word in pair))
    assert f"port {port}" in stderr
    assert f"choose another with {option}" in stderr
    assert "--auto-ports" in stderr


@pytest.mark.parametrize(("command", "bound"), [("--rows", "-1"), ("--count", "0")])
def test_numbers_out_of_range_are_usage_errors(command: str, bound: str) -> None:
    assert command in failed("tail", command, bound, code=2)
