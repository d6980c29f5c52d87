"""A gateway over real HTTP, and what a test asks of it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

import services.gateway.app
from services.gateway.http.server import OPTIONS
from shared.runtime.settings import Settings
from tests.integration.arena import Arena, as_user, eventually
from tests.waiting import PATIENCE

# A run that takes what is sent to it, and makes nothing.
SUBMITTED = {"workload": {"source": "submitted"}, "schedulers": ["greedy"]}
TASK = {"size": 960, "compute_intensity": 0.75, "memory_required": 81}


class Server(uvicorn.Server):
    """Leaves the test runner's signal handlers alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    # Whether somebody built a dashboard beside the source must not decide a test.
    folder = settings.dashboard_dir or Path("no dashboard")
    _, app = services.gateway.app.make(
        as_user("gateway", settings).model_copy(update={"dashboard_dir": folder})
    )
    server = Server(uvicorn.Config(app, log_config=None, lifespan="on", **OPTIONS))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        work = asyncio.create_task(server.serve(sockets=[listening]))
        await eventually(lambda: server.started or work.done())
        try:
            address = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
                yield client
        finally:
            server.should_exit = True
            await work


async def whole(arena: Arena, *policies: str) -> None:
    await arena.schedulers(*policies)
    await arena.start("simulator")
    await arena.start("generator")


async def started(http: httpx.AsyncClient, **spec: Any) -> str:
    answer = await http.post("/api/runs", json=spec)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["run"])


async def state_of(http: httpx.AsyncClient, run: str, state: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        found = (await http.get(f"/api/runs/{run}")).json()
        return found if found["state"] == state else None

    return dict(await eventually(look, f"run {run} {state}"))


async def completed(http: httpx.AsyncClient, **spec: Any) -> str:
    run = await started(http, **{"pace": "max", "tasks": 400, **spec})
    await state_of(http, run, "completed")
    return run


async def get(http: httpx.AsyncClient, path: str, **parameters: Any) -> Any:
    answer = await http.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def assert_problem(answer: httpx.Response, status: int, *said: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert body["title"]
    for text in said:
        assert text in body["detail"]
    return body
