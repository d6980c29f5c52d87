"""The arena's HTTP interface as a small client, for the command line and the lab."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pyarrow as pa

from shared import subjects
from shared.errors import ArenaError, Unavailable
from shared.models import MANIFEST, Model, read
from shared.tls import client_context

ARROW_STREAM = "application/vnd.apache.arrow.stream"
MODEL_MANIFEST = "X-Model-Manifest"  # what an artefact is, as JSON
NEXT_TASK = "X-Next-Task"  # where a run's stream stands, when tasks do not belong there

# So long an arena may be away (restarted, say) before a command gives up on it.
PATIENCE_SECONDS = 120.0
AWAY_SECONDS = 0.25  # between two attempts then
TOO_MANY = 429
AWAY = (502, 503, 504)  # the gateway, or what is before it, is there, but what it needs is not

Answer = TypeVar("Answer")
Pause = Callable[[float], None]


class Refused(ArenaError):
    """The gateway said no; the text says why."""

    def __init__(self, why: str, status: int, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.headers = headers or {}

    @property
    def next_task(self) -> int | None:
        said = self.headers.get(NEXT_TASK)
        return None if said is None else int(said)

    @property
    def retry_after(self) -> float:
        """Seconds."""
        said = self.headers.get("Retry-After", "")
        return float(said) if said.isdigit() else 1.0


class Gateway:
    def __init__(self, url: str, token: str = "", authority: Path | None = None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        verify = client_context(authority) if authority else True
        self._client = httpx.Client(base_url=url, headers=headers, timeout=30, verify=verify)
        self.url = url

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def get(self, path: str, **parameters: Any) -> Any:
        return self._send("GET", path, params=_given(parameters))

    def post(self, path: str, body: Any = None, **parameters: Any) -> Any:
        return self._send("POST", path, json=body, params=_given(parameters))

    def delete(self, path: str, **parameters: Any) -> Any:
        return self._send("DELETE", path, params=_given(parameters))

    def submit(self, run: str, tasks: pa.RecordBatch, *, last: bool) -> Any:
        """Put tasks into a run that takes them in bulk; the first one's id is where they belong."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, tasks.schema) as writer:
            writer.write_batch(tasks)
        return self._send(
            "POST",
            f"/api/runs/{run}/tasks",
            params={"first": tasks.column("task_id")[0].as_py(), "last": last},
            content=bytes(sink.getvalue()),
            headers={"Content-Type": ARROW_STREAM},
        )

    def model(self, run: str, name: str, version: int | None) -> Model:
        """A model as it was shipped; without a version the one in service."""
        answer = self._ask("GET", f"/api/models/{run}/{name}/{version or 'newest'}")
        headers = {MANIFEST: answer.headers.get(MODEL_MANIFEST, "")}
        return read(subjects.model(run, name), headers, answer.content)

    def _send(self, method: str, path: str, **options: Any) -> Any:
        return self._ask(method, path, **options).json()

    def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            answer = self._client.request(method, path, **options)
        except httpx.HTTPError as error:
            raise Unavailable(
                f"no arena answers at {self.url} ({type(error).__name__}); "
                "start one with `hybrid up`, or say where it is with --url or --data-dir"
            ) from None
        if answer.is_success or (answer.status_code == 503 and path == "/api/health"):
            return answer
        raise Refused(_why(answer), answer.status_code, answer.headers)


def in_turn(ask: Callable[[], Answer], pause: Pause = time.sleep) -> Answer:
    """The answer; as often as there were too many calls it waits for as long as it is told."""
    while True:
        try:
            return ask()
        except Refused as refused:
            if refused.status != TOO_MANY:
                raise
            pause(refused.retry_after)


def patiently(ask: Callable[[], Answer], pause: Pause = time.sleep) -> Answer:
    """In turn, and an arena that is away for a while is waited for. Only for what may be asked
    twice: an answer may have been lost."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return in_turn(ask, pause)
        except (Unavailable, Refused) as error:
            away = isinstance(error, Unavailable) or error.status in AWAY
            if not away or time.monotonic() > deadline:
                raise
        pause(AWAY_SECONDS)


def _given(parameters: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parameters.items() if value is not None}


def _why(answer: httpx.Response) -> str:
    try:
        said = answer.json()
        detail = "\n".join(said.get("problems") or [said["detail"]])
    except (ValueError, KeyError, AttributeError):
        detail = answer.text[:500]
    return detail or f"HTTP {answer.status_code}"
