"""`hybrid model ...` against a gateway that says what it is told to."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save
from typer.testing import CliRunner, Result

from services.cli.main import app
from shared.models import Manifest, digest

NOWHERE = "http://127.0.0.1:1"
RUN = "some-run"
WEIGHTS = save({"value.weight": torch.tensor([1.5, -2.0]), "scale": torch.tensor([3.0])})
ROW = {
    "run": RUN,
    "name": "rl_agent",
    "version": 2,
    "shipped": True,
    "reason": "after [50] more learning steps",
    "score": None,
    "champion_score": None,
    "sha256": "ab",
    "format": "safetensors",
    "trained_on": 1234,
    "first_task": 0,
    "last_task": 1233,
    "metrics": {"loss": 0.125},
    "created_at": "2023-11-14T22:13:22Z",
}


class Gateway:
    """Answers by path; keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        self.asked: list[tuple[str, str, Any]] = []
        self.url = ""
        self.says("/api/status", {"run": RUN})

    def says(self, path: str, body: Any, status: int = 200, **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers[path] = (status, content, headers)

    def holds(self, body: bytes = WEIGHTS, version: str = "newest", **fields: Any) -> Manifest:
        given = {
            "run": RUN,
            "name": "rl_agent",
            "version": 7,
            "sha256": digest(body),
            "format": "safetensors",
            "trained_on": 50,
            "metrics": {"loss": 0.25},
            "reason": "≤ [1]",
            "created_at": 1.7e9,
        }
        manifest = Manifest(**{**given, **fields})
        path = f"/api/models/{RUN}/rl_agent/{version}"
        self.says(path, body, **{"X-Model-Manifest": json.dumps(manifest.model_dump())})
        return manifest


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Gateway]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HYBRID_GATEWAY_TOKEN", raising=False)
    made = Gateway()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("content-length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            made.asked.append((self.command, self.path, body))
            missing = (404, b'{"detail": "not held"}', {})
            status, content, headers = made.answers.get(self.path.partition("?")[0], missing)
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        made.url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("HYBRID_URL", made.url)
        yield made
        server.shutdown()
        thread.join()


def hybrid(*arguments: str) -> Result:
    result = CliRunner().invoke(app, ("model", *arguments), env={"COLUMNS": "160"})
    assert "Traceback" not in result.output
    return result


def done(*arguments: str) -> Result:
    result = hybrid(*arguments)
    assert result.exit_code == 0, result.output
    return result


def failed(*arguments: str, code: int = 1) -> str:
    result = hybrid(*arguments)
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", "", result.stderr).split())


@pytest.mark.parametrize(
    ("command", "mentions"),
    [
        ((), "rollback"),
        (("list",), "hybrid model list --name"),
        (("show",), "hybrid model show rl_agent --version 3"),
        (("export",), "hybrid model export hybrid_ml --out forest.pkl"),
        (("rollback",), "hybrid model rollback hybrid_ml 3"),
    ],
)
def test_every_command_has_help_with_an_example(command: tuple[str, ...], mentions: str) -> None:
    assert mentions in " ".join(done(*command, "--help").stdout.split())


def test_help_does_not_wait_for_the_learning_libraries() -> None:
    heavy = ("torch", "sklearn", "onnx", "joblib", "safetensors", "onnxruntime")
    program = (
        f"import sys, services.cli.main; print([name for name in {heavy!r} if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert answer.stdout.strip() == "[]", answer.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("show", "hybrid_ml"),
        ("export", "hybrid_ml", "--out", "a.pkl"),
        ("rollback", "hybrid_ml", "1", "--run", RUN),
    ],
)
def test_without_an_arena_a_command_says_how_to_get_one(arguments: tuple[str, ...]) -> None:
    assert f"no arena answers at {NOWHERE}" in failed(*arguments, "--url", NOWHERE)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("list", "--name", "greedy"), "no learner greedy; there are hybrid_ml, rl_agent"),
        (("show", "oracle"), "no learner oracle; there are hybrid_ml, rl_agent"),
        (("export", "forest"), "no learner forest; there are hybrid_ml, rl_agent"),
        (("rollback", "forest", "1"), "no learner forest; there are hybrid_ml, rl_agent"),
        (("export", "hybrid_ml", "--out", "a.pth"), "a.pth: a model of hybrid_ml is exported as"),
        (("export", "rl_agent", "--out", "a.pkl"), "a model of rl_agent is exported as .pth"),
    ],
)
def test_bad_input_is_one_line_and_asks_nobody(
    gateway: Gateway, arguments: tuple[str, ...], said: str
) -> None:
    stderr = failed(*arguments)
    assert stderr.startswith("error: ")
    assert said in stderr
    assert gateway.asked == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("show",),
        ("export",),
        ("rollback", "hybrid_ml"),
        ("rollback", "hybrid_ml", "0"),
        ("rollback", "hybrid_ml", "newest"),
        ("show", "hybrid_ml", "--version", "0"),
        ("export", "hybrid_ml", "--version", "two"),
        ("list", "--limit", "1001"),
    ],
)
def test_what_is_missing_or_out_of_range_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    assert "Usage: " in failed(*arguments, code=2)


def test_without_any_run_a_command_says_how_to_start_one(gateway: Gateway) -> None:
    gateway.says("/api/status", {"run": None})
    assert "no run yet; start one with `hybrid run start`" in failed("list")


def test_list_is_a_table_of_the_newest_run(gateway: Gateway) -> None:
    gateway.says("/api/models", [ROW, {**ROW, "version": 1, "shipped": False, "score": 1.5}])
    shown = done("list").stdout
    for text in (RUN, "kept back", "shipped", "1,234", "1.5000", "after [50] more learning steps"):
        assert text in shown
    assert gateway.asked[-1][1] == f"/api/models?run={RUN}&limit=20"


def test_list_passes_its_options_on_and_prints_json(gateway: Gateway) -> None:
    gateway.says("/api/models", [ROW])
    answer = done("list", "--run", "other", "--name", "rl_agent", "--limit", "3", "--json")
    assert json.loads(answer.stdout) == [ROW]
    assert [path for _, path, _ in gateway.asked] == ["/api/models?run=other&name=rl_agent&limit=3"]


def test_an_empty_list_says_so(gateway: Gateway) -> None:
    gateway.says("/api/models", [])
    answer = done("list")
    assert (answer.stdout, f"no model in run {RUN} yet" in answer.stderr) == ("", True)


def test_show_is_of_the_model_in_service(gateway: Gateway) -> None:
    manifest = gateway.holds()
    shown = done("show", "rl_agent").stdout
    for text in (RUN, manifest.sha256, "loss 0.25", "≤ [1]", str(len(WEIGHTS))):
        assert text in shown
    found = json.loads(done("show", "rl_agent", "--json").stdout)
    assert found == {**manifest.model_dump(), "bytes": len(WEIGHTS), "held": True}


def test_show_knows_versions_that_the_bus_has_forgotten(gateway: Gateway) -> None:
    """A challenger that was kept back may have had the same number."""
    gateway.says("/api/models", [{**ROW, "shipped": False, "sha256": "cd"}, ROW])
    found = json.loads(done("show", "rl_agent", "--version", "2", "--json").stdout)
    assert found == {**ROW, "created_at": 1_700_000_002.0, "held": False}
    assert gateway.asked[-1][1] == f"/api/models?run={RUN}&name=rl_agent&version=2"
    done("show", "rl_agent", "--version", "2")
    gateway.says("/api/models", [])
    assert failed("show", "rl_agent", "--version", "2") == "error: not held"
    assert failed("show", "rl_agent") == "error: not held"


def test_export_writes_a_file_named_after_the_model(gateway: Gateway, tmp_path: Path) -> None:
    gateway.holds()
    answer = done("export", "rl_agent")
    assert answer.stdout == "rl_agent-v7.pth\n"
    loaded = torch.load(tmp_path / "rl_agent-v7.pth", weights_only=True)
    assert loaded["value.weight"].tolist() == [1.5, -2.0]


def test_export_of_a_version_to_a_file(gateway: Gateway, tmp_path: Path) -> None:
    manifest = gateway.holds(version="3")
    said = done("export", "rl_agent", "--version", "3", "--out", "here.pth", "--json").stdout
    assert json.loads(said) == {"file": "here.pth", **manifest.model_dump()}
    assert [file.name for file in tmp_path.iterdir()] == ["here.pth"]


def test_export_refuses_what_is_not_what_its_manifest_says(
    gateway: Gateway, tmp_path: Path
) -> None:
    for changed, said in (
        ({"sha256": digest(b"another")}, "the hash does not match the manifest"),
        ({"run": "other-run"}, "came on models.some-run.rl_agent"),
    ):
        gateway.holds(**changed)
        assert said in failed("export", "rl_agent")
    gateway.holds(body=b"no weights")
    assert "not a safetensors file" in failed("export", "rl_agent")
    gateway.says(f"/api/models/{RUN}/rl_agent/newest", WEIGHTS)
    assert "no readable manifest" in failed("export", "rl_agent")
    assert list(tmp_path.iterdir()) == []


def test_rollback_says_the_new_version(gateway: Gateway) -> None:
    manifest = gateway.holds(version="5").model_dump()
    gateway.says(f"/api/models/{RUN}/rl_agent/rollback", manifest)
    said = done("rollback", "rl_agent", "3")
    assert "version 3 is in service again, as version 7" in said.stderr
    assert gateway.asked[-1] == ("POST", f"/api/models/{RUN}/rl_agent/rollback", {"version": 3})
    assert json.loads(done("rollback", "rl_agent", "3", "--json").stdout) == manifest


def test_rollback_that_is_refused_says_why(gateway: Gateway) -> None:
    place = f"/api/models/{RUN}/rl_agent/rollback"
    gateway.says(place, {"detail": "no trainer answers"}, 503)
    assert failed("rollback", "rl_agent", "3") == "error: no trainer answers"
