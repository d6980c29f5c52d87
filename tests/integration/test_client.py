"""`hybrid_client` in a notebook, against a gateway over HTTP."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pandas as pd
import pytest

import hybrid_client
from hybrid_client import Arena as ClientArena
from shared.messages.advice import PROGRESS, REQUEST, AdviceProgress, AdviceRequest
from tests.integration.arena import Arena, eventually
from tests.integration.gateway import serving, whole


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


async def test_a_fork_is_compared_with_its_parent(arena: Arena, http: httpx.AsyncClient) -> None:
    await arena.start("recorder")
    await whole(arena, "eft", "greedy")
    client = ClientArena(str(http.base_url))

    def in_a_notebook() -> None:
        run = client.start(tasks=120, pace="max", seed=7, workload={"arrival_rate": 60}).wait()
        same = run.fork(50).wait().compare()
        assert same["tasks"].tolist() == [70, 70]
        assert same["different"].tolist() == [0, 0]
        assert same["first_different"].isna().all()
        one_gpu = run.fork(50, {"cluster.gpus": 1, "schedulers": ["eft"]}).wait()
        compared = one_gpu.compare(run, first=0).loc["eft"]
        own = one_gpu.results("eft").set_index("task_id")
        parent = run.results("eft").set_index("task_id")
        assert compared["avg_turnaround"] == pytest.approx(own["turnaround"].mean())
        assert compared["avg_turnaround_other"] == pytest.approx(parent["turnaround"].mean())
        different = own.index[own["finish"] != parent["finish"]]
        assert compared["different"] == len(different) > 0
        assert compared["first_different"] == different.min() >= 50
        with pytest.raises(hybrid_client.Refused, match="cluster"):
            run.fork(50, {"cluster.gpu": 1})

    with client:
        await asyncio.to_thread(in_a_notebook)


async def test_advice_is_refused_where_no_lab_can_answer(
    arena: Arena, http: httpx.AsyncClient
) -> None:
    with (
        ClientArena(str(http.base_url)) as client,
        pytest.raises(hybrid_client.Refused, match="HYBRID_REPORTS_DIR"),
    ):
        await asyncio.to_thread(client.advise, preset="hpc")


async def test_advice_that_fails_in_the_lab_says_why(arena: Arena, tmp_path: Path) -> None:
    jobs = pd.DataFrame({"size": [100.0], "arrival_time": [0.5]})
    settings = arena.settings.model_copy(update={"reports_dir": tmp_path})
    async with serving(settings) as http:
        with ClientArena(str(http.base_url)) as client:
            asking = asyncio.create_task(
                asyncio.to_thread(client.advise, jobs, schedulers=["eft"], progress=False)
            )
            request = await eventually(lambda: next(tmp_path.glob(f"*/{REQUEST}"), None))
            asked = AdviceRequest.model_validate_json(request.read_text())
            assert (asked.trace, asked.schedulers) == ("size,arrival_time\n100.0,0.5\n", ("eft",))
            # What the lab writes when it cannot read the jobs.
            failed = AdviceProgress(state="failed", text="jobs.csv: no column memory_required")
            (request.parent / PROGRESS).write_text(failed.model_dump_json())
            with pytest.raises(hybrid_client.AdviceFailed, match="no column memory_required"):
                await asking


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
