"""`hybrid rejected` and `hybrid status` against a real gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest
from typer.testing import CliRunner, Result

from services.cli.main import app
from shared.messages import subjects
from tests.integration.arena import Arena, eventually
from tests.integration.gateway import serving


@pytest.fixture
async def http(arena: Arena) -> AsyncIterator[httpx.AsyncClient]:
    await arena.start("recorder")
    async with serving(arena.settings) as client:
        yield client


async def hybrid(http: httpx.AsyncClient, *arguments: str, answer: str | None = None) -> Result:
    """The command, in a thread of its own: the gateway is in this one."""
    url = str(http.base_url)
    return await asyncio.to_thread(
        CliRunner().invoke, app, [*arguments, "--url", url], input=answer, env={"COLUMNS": "200"}
    )


async def letters(http: httpx.AsyncClient) -> list[int]:
    result = await hybrid(http, "rejected", "list", "--json")
    return [letter["sequence"] for letter in json.loads(result.stdout)]


async def test_the_way_of_a_dead_letter(arena: Arena, http: httpx.AsyncClient) -> None:
    result = await hybrid(http, "rejected", "list")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no dead letters\n")
    for place in range(1, 5):
        await arena.bus.reject("events.note", subjects.EVENTS, place, b'{"a": 1}', "[no] event")
    await arena.publish_raw("rejected.stranger", b"\x00\x01")

    result = await hybrid(http, "rejected", "list", "--limit", "2", "--subject", "events.*")
    assert "[no] event" in result.stdout
    assert result.stdout.count("events.note") == 2
    result = await hybrid(http, "rejected", "show", "4")
    for said in ("events.note", "[no] event", '{"a": 1}', "possible", "Hybrid-Reason"):
        assert said in result.stdout
    result = await hybrid(http, "rejected", "show", "5")
    assert "000000  00 01" in result.stdout
    assert "it does not say where it came from" in result.stdout

    result = await hybrid(http, "rejected", "replay", "1", "2")
    assert (result.exit_code, result.stderr.count("published again on events.note")) == (0, 2)
    result = await hybrid(http, "rejected", "replay", "5", "1")
    assert result.exit_code == 1
    assert "1: no dead letter 1" in result.stderr

    # The two that were replayed are no events still: the recorder puts them aside again.
    await eventually(lambda: letters(http), equals=[7, 6, 5, 4, 3])
    await eventually(
        lambda: hybrid(http, "status"),
        accept=lambda status: "dead letters: 5 (recorder 2, others 3)" in status.stdout,
    )
    result = await hybrid(http, "status")
    for reader in ("tasks", "results", "events", "runs"):
        assert f"{reader}/recorder" in result.stdout

    result = await hybrid(http, "rejected", "purge", "--subject", "events.>", answer="n\n")
    assert result.exit_code == 1
    assert "Remove 4 dead letters for good?" in result.stderr
    result = await hybrid(http, "rejected", "purge", "--subject", "events.>", answer="y\n")
    assert "4 removed" in result.stderr
    assert await letters(http) == [5]
    result = await hybrid(http, "rejected", "purge", "--all", "--yes", "--json")
    assert json.loads(result.stdout) == {"purged": 1}
    await eventually(
        lambda: hybrid(http, "status"), accept=lambda answer: "dead letters: none" in answer.stdout
    )


async def test_more_letters_than_calls_allowed_at_once_take_their_time(arena: Arena) -> None:
    limits = {"gateway_changes_per_second": 1.0}  # four at once
    async with serving(arena.settings.model_copy(update=limits)) as http:
        for place in range(1, 6):
            await arena.bus.reject("events.note", subjects.EVENTS, place, b"{}", "no event")
        result = await hybrid(http, "rejected", "replay", "--all")
        assert result.stderr.count("published again on events.note") == 5, result.stderr
        assert result.exit_code == 0
        await arena.bus.reject("events.note", subjects.EVENTS, 6, b"{}", "no event")
        result = await hybrid(http, "rejected", "purge", "6", "--yes")
        assert "1 removed" in result.stderr
