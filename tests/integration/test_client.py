"""`hybrid_client` in a notebook, against a gateway over HTTP."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest

import hybrid_client
from hybrid_client import Arena as ClientArena
from tests.integration.arena import Arena
from tests.integration.gateway import whole


async def test_a_run_from_its_start_to_its_results(
    arena: Arena, http: httpx.AsyncClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await whole(arena, "eft", "greedy")
    client = ClientArena(str(http.base_url))

    def in_a_notebook() -> None:
        schedulers = client.schedulers()
        assert set(schedulers.index) == {"eft", "greedy"}
        run = client.start({"seed": 7}, tasks=150, pace="max").wait()
        assert run.state == "completed"
        assert client.run(run.id).spec["seed"] == 7
        assert client.runs().loc[run.id, "tasks"] == 150
        race = run.race()
        assert race["results"].tolist() == [150, 150]
        assert race["avg_turnaround"].is_monotonic_increasing
        results = run.results()
        assert len(results) == 300
        means = results.groupby("scheduler")["turnaround"].mean()
        assert means["eft"] == pytest.approx(race.loc["eft", "avg_turnaround"])
        assert run.progress()["eft"].iloc[-1] == pytest.approx(means["eft"] * 150)
        trace = json.loads(run.save_trace(tmp_path / "trace.json", "eft").read_text())
        assert len([each for each in trace["traceEvents"] if each["ph"] == "X"]) == 150
        # To the last bit what is stored.
        own = run.results("eft").set_index("task_id")["turnaround"]
        stored = arena.store.query(
            "SELECT task_id, turnaround FROM scheduler_results FINAL WHERE scheduler = 'eft'"
        )
        assert own.to_dict() == {row["task_id"]: row["turnaround"] for row in stored}

    with client:
        await asyncio.to_thread(in_a_notebook)
    assert "150/150" in capsys.readouterr().err  # the progress bar


async def test_what_goes_wrong_is_said(arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(arena, "greedy")
    client = ClientArena(str(http.base_url))

    def in_a_notebook() -> None:
        with pytest.raises(hybrid_client.Refused, match="tasks"):
            client.start(tasks=-1)
        with pytest.raises(hybrid_client.Refused, match="nothing"):
            client.run("nothing")
        endless = client.start(pace=10)
        with pytest.raises(hybrid_client.RunFailed, match="no last task"):
            endless.wait()
        endless.pause()
        assert endless.state == "paused"
        assert endless.stop().state == "stopped"

    with client:
        await asyncio.to_thread(in_a_notebook)
    with (
        ClientArena("http://127.0.0.1:9") as nobody,
        pytest.raises(hybrid_client.Unavailable, match="no arena answers"),
    ):
        await asyncio.to_thread(nobody.runs)
