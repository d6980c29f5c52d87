"""Where the arena is, and its HTTP interface as a small client."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx

from deploy.local.arena import DEFAULT_DATA_DIR, Arena, find
from shared import subjects
from shared.errors import ArenaError, Unavailable
from shared.models import MANIFEST, Model, read
from shared.settings import Settings

DEFAULT_URL = "http://127.0.0.1:8000"


class Refused(ArenaError):
    """The gateway said no; the text says why."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.status = status


class Gateway:
    def __init__(self, url: str, token: str = "") -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=30)
        self.url = url

    def get(self, path: str, **parameters: Any) -> Any:
        return self._send("GET", path, params=_given(parameters))

    def post(self, path: str, body: Any = None, **parameters: Any) -> Any:
        return self._send("POST", path, json=body, params=_given(parameters))

    def model(self, run: str, name: str, version: int | None) -> Model:
        """A model as it was shipped; without a version the one in service."""
        answer = self._ask("GET", f"/api/models/{run}/{name}/{version or 'newest'}")
        headers = {MANIFEST: answer.headers.get("X-Model-Manifest", "")}
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
        raise Refused(_why(answer), answer.status_code)


def connect(url: str | None, data_dir: Path | None) -> Gateway:
    token = os.environ.get("HYBRID_GATEWAY_TOKEN", "")
    if url is None and (arena := local_arena(data_dir)):
        url = arena.url
    return Gateway(url or DEFAULT_URL, token)


def local_arena(data_dir: Path | None) -> Arena | None:
    """The embedded arena of a folder. A folder that was named must have one."""
    arena = find(data_dir or DEFAULT_DATA_DIR)
    if arena is None and data_dir is not None:
        raise Unavailable(f"no arena runs in {data_dir}")
    return arena


def settings(data_dir: Path | None) -> Settings:
    """How to reach NATS and ClickHouse: the local arena's, else what the environment says."""
    arena = local_arena(data_dir)
    return Settings() if arena is None else settings_of(arena)


def settings_of(arena: Arena) -> Settings:
    values = {
        key.removeprefix("HYBRID_").lower(): value for key, value in arena.environment().items()
    }
    return Settings.model_validate(values)


def _given(parameters: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parameters.items() if value is not None}


def _why(answer: httpx.Response) -> str:
    try:
        said = answer.json()
        detail = "\n".join(said.get("problems") or [said["detail"]])
    except (ValueError, KeyError, AttributeError):
        detail = answer.text[:500]
    return detail or f"HTTP {answer.status_code}"
