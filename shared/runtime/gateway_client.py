"""A small client of the gateway's HTTP interface, for the command line and the lab."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from shared.errors import ArenaError, Unavailable
from shared.messages import subjects
from shared.runtime.tls import client_context

if TYPE_CHECKING:  # imported where needed: pyarrow and pydantic slow down `hybrid status`
    import pyarrow as pa

    from shared.messages.models import Model

ARROW_STREAM = "application/vnd.apache.arrow.stream"
MODEL_MANIFEST = "X-Model-Manifest"  # the manifest of a model, as JSON
NEXT_TASK = "X-Next-Task"  # the task id that the run expects, when others were sent

# How long to retry while the arena is unavailable (being restarted, say), and how often.
RETRY_LIMIT_SECONDS = 120.0
RETRY_SECONDS = 0.25
DOWNLOAD_SECONDS = 300.0  # that a stretch of a large answer may take
TOO_MANY = 429
UNAVAILABLE = (502, 503, 504)

Answer = TypeVar("Answer")
Pause = Callable[[float], None]


class Refused(ArenaError):
    """The gateway refused the request; the text says why."""

    def __init__(self, reason: str, status: int, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = headers or {}

    @property
    def next_task(self) -> int | None:
        value = self.headers.get(NEXT_TASK)
        return None if value is None else int(value)

    @property
    def retry_after(self) -> float:
        """Seconds."""
        value = self.headers.get("Retry-After", "")
        return float(value) if value.isdigit() else 1.0


class GatewayClient:
    def __init__(
        self, url: str, token: str = "", authority: Path | None = None, timeout: float = 30
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        verify = client_context(authority) if authority else True
        self._client = httpx.Client(base_url=url, headers=headers, timeout=timeout, verify=verify)
        self.url = url

    def __enter__(self) -> GatewayClient:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def get(self, path: str, **parameters: Any) -> Any:
        return self._send("GET", path, params=_without_none(parameters))

    def post(self, path: str, body: Any = None, **parameters: Any) -> Any:
        return self._send("POST", path, json=body, params=_without_none(parameters))

    def put(self, path: str, body: Any) -> Any:
        return self._send("PUT", path, json=body)

    def delete(self, path: str, **parameters: Any) -> Any:
        return self._send("DELETE", path, params=_without_none(parameters))

    def submit(self, run: str, tasks: pa.RecordBatch, *, last: bool) -> Any:
        """Submit tasks in bulk; the id of the first one says where they belong."""
        import pyarrow as pa

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
        """A model as it was shipped; without a version, the one in service."""
        from shared.messages.models import MANIFEST, read_model

        response = self._request("GET", f"/api/models/{run}/{name}/{version or 'newest'}")
        headers = {MANIFEST: response.headers.get(MODEL_MANIFEST, "")}
        return read_model(subjects.model(run, name), headers, response.content)

    def download(self, path: str, **parameters: Any) -> Iterator[bytes]:
        """A large answer, piece by piece."""
        query = _without_none(parameters)
        try:
            with self._client.stream(
                "GET", path, params=query, timeout=DOWNLOAD_SECONDS
            ) as response:
                if not response.is_success:
                    response.read()
                    raise Refused(_reason(response), response.status_code, response.headers)
                yield from response.iter_bytes()
        except httpx.HTTPError as error:
            raise self._unavailable(error) from None

    def _unavailable(self, error: httpx.HTTPError) -> Unavailable:
        return Unavailable(
            f"no arena answers at {self.url} ({type(error).__name__}); "
            "start one with `hybrid up`, or say where it is with --url or --data-dir"
        )

    def _send(self, method: str, path: str, **options: Any) -> Any:
        return self._request(method, path, **options).json()

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            response = self._client.request(method, path, **options)
        except httpx.HTTPError as error:
            raise self._unavailable(error) from None
        if response.is_success or (response.status_code == 503 and path == "/api/health"):
            return response
        raise Refused(_reason(response), response.status_code, response.headers)


def retry_when_rate_limited(request: Callable[[], Answer], pause: Pause = time.sleep) -> Answer:
    """Retry after the time that the gateway names, as long as the rate limit is exceeded."""
    while True:
        try:
            return request()
        except Refused as refused:
            if refused.status != TOO_MANY:
                raise
            pause(refused.retry_after)


def retry_while_unavailable(request: Callable[[], Answer], pause: Pause = time.sleep) -> Answer:
    """Retry while the arena is unavailable. Only for requests that may be sent twice: a response
    may have been lost."""
    deadline = time.monotonic() + RETRY_LIMIT_SECONDS
    while True:
        try:
            return retry_when_rate_limited(request, pause)
        except (Unavailable, Refused) as error:
            unavailable = isinstance(error, Unavailable) or error.status in UNAVAILABLE
            if not unavailable or time.monotonic() > deadline:
                raise
        pause(RETRY_SECONDS)


def _without_none(parameters: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parameters.items() if value is not None}


def _reason(response: httpx.Response) -> str:
    try:
        problem = response.json()
        detail = "\n".join(problem.get("problems") or [problem["detail"]])
    except (ValueError, KeyError, AttributeError):
        detail = response.text[:500]
    return detail or f"HTTP {response.status_code}"
