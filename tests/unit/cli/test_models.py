"""`hybrid model ...` against a gateway with prepared responses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save
from typer.testing import Result

from shared.messages.models import Manifest, digest
from tests.unit.cli.test_commands import failed, hybrid

RUN = "some-run"
WEIGHTS = save({"value.weight": torch.tensor([1.5, -2.0]), "scale": torch.tensor([3.0])})
ROW = {
    "run": RUN, "name": "rl_agent", "version": 2, "shipped": True, "format": "safetensors",
    "reason": "after [50] more learning steps", "score": None, "champion_score": None,
    "sha256": "ab", "trained_on": 1234, "first_task": 0, "last_task": 1233,
    "metrics": {"loss": 0.125}, "created_at": "2023-11-14T22:13:22Z",
}  # fmt: skip
NOT_HELD: tuple[int, bytes, dict[str, str]] = (404, b'{"detail": "not held"}', {})


class Gateway:
    """Prepared responses by path, and the requests that came."""

    def __init__(self) -> None:
        self.responses: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        self.requests: list[tuple[str, str, Any]] = []
        self.url = ""
        self.respond("/api/status", {"run": RUN})

    def respond(self, path: str, body: Any, status: int = 200, **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.responses[path] = (status, content, headers)

    def hold(self, body: bytes = WEIGHTS, version: str = "newest", **fields: Any) -> Manifest:
        defaults = {
            "run": RUN, "name": "rl_agent", "version": 7, "sha256": digest(body), "reason": "≤ [1]",
            "format": "safetensors", "trained_on": 50, "metrics": {"loss": 0.25},
            "created_at": 1.7e9,
        }  # fmt: skip
        manifest = Manifest(**{**defaults, **fields})
        path = f"/api/models/{RUN}/rl_agent/{version}"
        self.respond(path, body, **{"X-Model-Manifest": json.dumps(manifest.model_dump())})
        return manifest


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Gateway]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HYBRID_GATEWAY_TOKEN", raising=False)
    monkeypatch.setenv("COLUMNS", "160")
    server_state = Gateway()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("content-length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            server_state.requests.append((self.command, self.path, body))
            path = self.path.partition("?")[0]
            status, content, headers = server_state.responses.get(path, NOT_HELD)
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
        server_state.url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("HYBRID_URL", server_state.url)
        yield server_state
        server.shutdown()
        thread.join()


def refused(*arguments: str, code: int = 1) -> str:
    return failed("model", *arguments, code=code)


def done(*arguments: str) -> Result:
    result = hybrid("model", *arguments)
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "--name", "My Own"), "'My Own' is no scheduler name"),
        (("show", "../a"), "'../a' is no scheduler name"),
        (("export", "a.b"), "'a.b' is no scheduler name"),
        (("rollback", "Forest", "1"), "'Forest' is no scheduler name"),
    ],
)
def test_bad_input_is_one_line_and_sends_no_request(
    gateway: Gateway, arguments: tuple[str, ...], message: str
) -> None:
    stderr = refused(*arguments)
    assert stderr.startswith("error: ")
    assert message in stderr
    assert gateway.requests == []


@pytest.mark.parametrize(
    "arguments",
    [
        *("show", "export", "rollback hybrid_ml", "rollback hybrid_ml 0", "list --limit 1001"),
        *("rollback hybrid_ml newest", "show hybrid_ml --version 0", "export rl_agent --version x"),
    ],
)
def test_what_is_missing_or_out_of_range_is_a_usage_error(arguments: str) -> None:
    assert "Usage: " in refused(*arguments.split(), code=2)


def test_without_any_run_a_command_says_how_to_start_one(gateway: Gateway) -> None:
    gateway.respond("/api/status", {"run": None})
    assert "no run yet; start one with `hybrid run start`" in refused("list")


def test_list_is_a_table_of_the_newest_run(gateway: Gateway) -> None:
    gateway.respond("/api/models", [ROW, {**ROW, "version": 1, "shipped": False, "score": 1.5}])
    shown = done("list").stdout
    for text in (
        RUN,
        "not shipped",
        "shipped",
        "1,234",
        "1.5000",
        "after [50] more learning steps",
    ):
        assert text in shown
    assert gateway.requests[-1][1] == f"/api/models?run={RUN}&limit=20"


def test_list_passes_its_options_on_and_prints_json(gateway: Gateway) -> None:
    gateway.respond("/api/models", [ROW])
    answer = done("list", "--run", "other", "--name", "rl_agent", "--limit", "3", "--json")
    assert json.loads(answer.stdout) == [ROW]
    (request,) = gateway.requests
    assert request[1] == "/api/models?run=other&name=rl_agent&limit=3"


def test_a_list_of_a_run_that_does_not_exist_fails(gateway: Gateway) -> None:
    gateway.respond("/api/models", [])
    gateway.respond("/api/runs/nope", {"detail": "no run nope"}, 404)
    for options in ((), ("--json",)):
        assert refused("list", "--run", "nope", *options) == "error: no run nope"


def test_an_empty_list_says_so(gateway: Gateway) -> None:
    gateway.respond("/api/models", [])
    answer = done("list")
    assert (answer.stdout, f"no model in run {RUN} yet" in answer.stderr) == ("", True)


def test_show_is_of_the_model_in_service(gateway: Gateway) -> None:
    manifest = gateway.hold()
    shown = done("show", "rl_agent").stdout
    for text in (RUN, manifest.sha256, "loss 0.25", "≤ [1]", str(len(WEIGHTS))):
        assert text in shown
    shown = json.loads(done("show", "rl_agent", "--json").stdout)
    assert shown == {**manifest.model_dump(), "bytes": len(WEIGHTS), "held": True}


def test_show_finds_versions_that_the_bus_no_longer_holds(gateway: Gateway) -> None:
    """A challenger that was not shipped may have had the same number."""
    gateway.respond("/api/models", [{**ROW, "shipped": False, "sha256": "cd"}, ROW])
    shown = json.loads(done("show", "rl_agent", "--version", "2", "--json").stdout)
    assert shown == {**ROW, "created_at": 1_700_000_002.0, "held": False}
    assert gateway.requests[-1][1] == f"/api/models?run={RUN}&name=rl_agent&version=2"
    done("show", "rl_agent", "--version", "2")
    gateway.respond("/api/models", [])
    assert refused("show", "rl_agent", "--version", "2") == "error: not held"
    assert refused("show", "rl_agent") == "error: not held"


def test_export_writes_a_file_named_after_the_model(gateway: Gateway, tmp_path: Path) -> None:
    gateway.hold()
    answer = done("export", "rl_agent")
    assert answer.stdout == "rl_agent-v7.pth\n"
    loaded = torch.load(tmp_path / "rl_agent-v7.pth", weights_only=True)
    assert loaded["value.weight"].tolist() == [1.5, -2.0]


def test_export_of_a_version_to_a_file(gateway: Gateway, tmp_path: Path) -> None:
    manifest = gateway.hold(version="3")
    output = done("export", "rl_agent", "--version", "3", "--out", "here.pth", "--json").stdout
    assert json.loads(output) == {"file": "here.pth", **manifest.model_dump()}
    assert [file.name for file in tmp_path.iterdir()] == ["here.pth"]


def test_export_refuses_what_is_not_what_its_manifest_respond(
    gateway: Gateway, tmp_path: Path
) -> None:
    for changed, message in (
        ({"sha256": digest(b"another")}, "the hash does not match the manifest"),
        ({"run": "other-run"}, "came on models.some-run.rl_agent"),
    ):
        gateway.hold(**changed)
        assert message in refused("export", "rl_agent")
    gateway.hold(body=b"no weights")
    assert "not a safetensors file" in refused("export", "rl_agent")
    gateway.respond(f"/api/models/{RUN}/rl_agent/newest", WEIGHTS)
    assert "no readable manifest" in refused("export", "rl_agent")
    assert list(tmp_path.iterdir()) == []


def test_export_refuses_a_file_of_another_kind(gateway: Gateway, tmp_path: Path) -> None:
    gateway.hold()
    message = refused("export", "rl_agent", "--out", "a.pkl")
    assert "a.pkl: a model of rl_agent is exported as .pth" in message
    assert list(tmp_path.iterdir()) == []


def test_rollback_says_the_new_version(gateway: Gateway) -> None:
    manifest = gateway.hold(version="5").model_dump()
    gateway.respond(f"/api/models/{RUN}/rl_agent/rollback", manifest)
    result = done("rollback", "rl_agent", "3")
    assert "version 3 is in service again, as version 7" in result.stderr
    assert gateway.requests[-1] == ("POST", f"/api/models/{RUN}/rl_agent/rollback", {"version": 3})
    assert json.loads(done("rollback", "rl_agent", "3", "--json").stdout) == manifest


def test_rollback_that_is_refused_says_why(gateway: Gateway) -> None:
    place = f"/api/models/{RUN}/rl_agent/rollback"
    gateway.respond(place, {"detail": "no trainer answers"}, 503)
    assert refused("rollback", "rl_agent", "3") == "error: no trainer answers"
