"""The export of a run's timeline for Perfetto."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.integration.arena import Arena
from tests.integration.gateway import assert_problem, completed, whole


async def test_every_part_of_a_task_is_on_its_device(arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(arena, "cpu_only", "round_robin")
    run = await completed(http, tasks=60)
    answer = await http.get(f"/api/runs/{run}/trace.json")
    trace = json.loads(answer.text)
    names = {
        (each["pid"], each.get("tid")): each["args"]["name"]
        for each in trace["traceEvents"]
        if each["ph"] == "M" and each["name"].endswith("_name")
    }
    parts = [each for each in trace["traceEvents"] if each["ph"] == "X"]
    rows = arena.store.query("SELECT * FROM scheduler_results FINAL")
    expected = {
        (row["scheduler"], device, row["task_id"]): (row[f"{kind}_start"], row[f"{kind}_time"])
        for row in rows
        for kind, device in (("gpu", f"gpu_{row['device']}"), ("cpu", "cpu_0"))
        if row[f"{kind}_time"] > 0
    }
    shown = {
        (names[each["pid"], None], names[each["pid"], each["tid"]], each["args"]["task"]): (
            pytest.approx(each["ts"] / 1e6),
            pytest.approx(each["dur"] / 1e6),
        )
        for each in parts
    }
    assert len(parts) == len(expected) == 60 + 60 + 30  # round_robin splits every second one
    assert {key: shown[key] for key in expected} == expected


async def test_one_scheduler_alone(arena: Arena, http: httpx.AsyncClient) -> None:
    await whole(arena, "cpu_only", "gpu_only")
    run = await completed(http, tasks=20)
    trace = (await http.get(f"/api/runs/{run}/trace.json?scheduler=cpu_only")).json()
    assert len([each for each in trace["traceEvents"] if each["ph"] == "X"]) == 20
    assert_problem(await http.get(f"/api/runs/{run}/trace.json?scheduler=eft"), 404)
