"""SIGTERM while a service waits for NATS or ClickHouse ends it at once; what it waits for is in
/api/health."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.integration.arena import Arena, eventually
from tests.integration.clickhouse_server import ROOT
from tests.integration.gateway import serving

# Killed after thirty seconds by Docker; a busy machine needs some for the process to end.
STOP_SECONDS = 20
NOWHERE = "127.0.0.1:1"


def start_without_nats(service: str, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", f"services.{service}"],
            cwd=ROOT,
            env={"HYBRID_NATS_URL": f"nats://{NOWHERE}", "HYBRID_HTTP_PORT": "0"},
            stdout=output,
            stderr=output,
        )


@pytest.mark.parametrize("service", ["recorder", "gateway"])
async def test_a_service_that_waits_for_nats_stops_at_once(service: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = start_without_nats(service, log)
    try:
        await eventually(lambda: "NATS" in log.read_text(), f"{service} waits")
        process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(process.wait, STOP_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert code == -signal.SIGTERM, log.read_text()
    assert "Traceback" not in log.read_text()


@pytest.mark.parametrize("problem", ["nothing listens", "wrong password"])
async def test_a_recorder_that_waits_for_clickhouse_says_so_and_stops_at_once(
    arena: Arena, problem: str
) -> None:
    wrong = (
        {"clickhouse_url": f"http://{NOWHERE}"}
        if problem == "nothing listens"
        else {"clickhouse_password": SecretStr("wrong")}
    )
    process = arena.process("recorder", **wrong)
    async with serving(arena.settings) as http:

        async def reason() -> str:
            health = (await http.get("/api/health")).json()
            reports = {report["service"]: report["problems"] for report in health["services"]}
            assert health["status"] == "degraded"
            return str(reports.get("recorder", {}).get("clickhouse", ""))

        shown = await eventually(reason, "the recorder's problem")
    assert ("Authentication failed" if problem == "wrong password" else "refused") in shown
    process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(process.wait, STOP_SECONDS) == -signal.SIGTERM


async def test_a_worker_that_nats_refuses_is_named_with_the_reason_and_stops_at_once(
    arena: Arena,
) -> None:
    async with serving(arena.settings) as http:

        async def refused() -> list[dict[str, Any]]:
            health = (await http.get("/api/health")).json()
            assert health["status"] == "degraded"
            return list(health["refused"])

        # The gateway may need a moment to subscribe; the worker tries again and again.
        process = arena.process("scheduler", policy="oracle", nats_password=SecretStr("wrong"))
        rows = await eventually(refused, "the worker is refused")
    assert [(row["client"], row["user"]) for row in rows] == [("scheduler oracle", "scheduler")]
    process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(process.wait, STOP_SECONDS) == -signal.SIGTERM
