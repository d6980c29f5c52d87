"""The gateway answers every request as its OpenAPI description says, and never with a 5xx."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from shared.errors import NotAllowed, NotFound
from shared.messages import subjects
from shared.messages.runs import RunState
from tests.fuzz import amount, interface
from tests.integration.arena import Arena, eventually
from tests.integration.gateway import completed, serving, started, whole


async def stop_runs(arena: Arena, but: str) -> None:
    """Many calls start one, and hundreds at once would only make each call slow."""
    while True:
        for record in await arena.runs.refresh():
            if record.active and record.run != but:
                with suppress(NotFound, NotAllowed):
                    await arena.runs.change_state(record.run, RunState.STOPPED)
        await asyncio.sleep(0.5)


@pytest.mark.timeout(900 + 60 * amount.CALLS)
async def test_no_call_brings_the_gateway_down(arena: Arena, tmp_path: Path) -> None:
    amount.announce()
    await arena.start("recorder")
    await whole(arena, "greedy", "oracle")
    changed = {
        "gateway_reads_per_second": 0.0,
        "gateway_changes_per_second": 0.0,
        "reports_dir": tmp_path,
    }
    async with serving(arena.settings.model_copy(update=changed)) as http:
        run = await completed(http, tasks=60)
        live = await started(http, pace=1)
        for place in range(20):
            await arena.bus.reject("tasks.x", subjects.TASKS, place + 1, b"?" * place, "fuzz")
        known = {
            "run": run,
            "task_id": 5,
            "sequence": 3,
            "name": "hybrid_ml",
            "scheduler": "greedy",
            "version": "newest",
            "file": "report.json",
        }
        tidying = asyncio.create_task(stop_runs(arena, but=live))
        made, wrong = await asyncio.to_thread(
            interface.bombard,
            str(http.base_url).rstrip("/"),
            known,
            amount.CALLS,
            amount.LEAST_CALLS,
            amount.SEED,
        )
        tidying.cancel()
        amount.report("HTTP calls", made)
        assert wrong == []
        assert made.total() >= amount.LEAST_CALLS
        paths = (await http.get("/openapi.json")).json()["paths"]
        assert len(made) == sum(len(methods) for methods in paths.values())
        await eventually(
            lambda: http.get("/api/health"), accept=lambda answer: answer.status_code == 200
        )
