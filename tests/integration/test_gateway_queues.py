"""Timelines and queues: by hand on one CPU, and against sums over all stored results."""

from __future__ import annotations

from typing import Any

import httpx
import pyarrow as pa
import pytest

from services.gateway.analysis import device_work, timeline
from shared.runtime.gateway_client import ARROW_STREAM
from tests.integration.arena import Arena, eventually
from tests.integration.gateway import SUBMITTED, assert_problem, completed, get, started, whole

TASK = {"size": 4000.0, "compute_intensity": 0.5, "memory_required": 10.0}


async def test_three_tasks_on_one_cpu(arena: Arena, http: httpx.AsyncClient) -> None:
    """They arrive at 0, 1 and 1.5 and take c seconds each: the second begins at c, the third at
    2 c. When the third arrives, the first has 1.5 s behind it and the second waits."""
    await whole(arena, "cpu_only")
    spec = {**SUBMITTED, "schedulers": ["cpu_only"], "cluster": {"cpus": 1, "gpus": 1}}
    run = await started(http, **spec)
    tasks = pa.Table.from_pylist([{**TASK, "arrival_time": at} for at in (0.0, 1.0, 1.5)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, tasks.schema) as writer:
        writer.write_table(tasks)
    headers, body = {"Content-Type": ARROW_STREAM}, bytes(sink.getvalue())
    answer = await http.post(f"/api/runs/{run}/tasks?first=0", content=body, headers=headers)
    assert answer.status_code == 202, answer.text

    async def stored() -> bool:
        return bool((await http.get(f"/api/runs/{run}/tasks/2/queues")).status_code == 200)

    await eventually(stored)
    c = (await get(http, f"/api/runs/{run}/tasks/2"))["results"][0]["cpu_time"]
    assert c > 1.5
    shown = await get(http, f"/api/runs/{run}/timeline", start=0, end=4 * c)
    assert [device["name"] for device in shown["devices"]] == ["gpu_0", "cpu_0"]
    assert shown["parts"]["row"] == [1, 1, 1]
    assert shown["parts"]["task_id"] == [0, 1, 2]
    assert shown["parts"]["begin"] == pytest.approx([0, c, 2 * c])
    assert shown["parts"]["end"] == pytest.approx([c, 2 * c, 3 * c])
    assert (shown["parts"]["decision"], shown["parts"]["size"]) == ([1] * 3, [4000] * 3)
    assert (shown["clock"], shown["makespan"]) == (1.5, pytest.approx(3 * c))
    assert shown["devices"][1]["busy"] == pytest.approx(0.75)
    arrived = await get(http, f"/api/runs/{run}/timeline", seconds=0.25)
    assert (arrived["start"], arrived["end"], arrived["parts"]["task_id"]) == (1.25, 1.5, [0])

    (queue,) = (await get(http, f"/api/runs/{run}/tasks/2/queues"))["queues"]
    gpu, cpu = queue["devices"]
    assert (gpu["seconds"], gpu["tasks"], gpu["chosen"]) == (0, 0, False)
    assert cpu["seconds"] == pytest.approx(2 * c - 1.5)
    assert (cpu["tasks"], cpu["waiting"], cpu["chosen"]) == (2, 1, True)
    assert queue["started"] == pytest.approx(2 * c)
    assert queue["types"][1]["longest"] == pytest.approx(2 * c - 1.5)

    tracks = await get(http, f"/api/runs/{run}/queues", points=4)
    assert tracks["schedulers"]["cpu_only"] == {
        "time": [0, 0.5, 1, 1.5],
        "unfinished": [1, 1, 2, 3],
        "waiting": [0, 0, 1, 2],
        "exact": True,
    }


def parts_of(row: dict[str, Any]) -> list[tuple[int, float, float]]:
    """Device, begin and end."""
    parts = [
        (row["device"], row["gpu_start"], row["gpu_time"]),
        (row["cpu"], row["cpu_start"], row["cpu_time"]),
    ]
    return [(device, begin, begin + length) for device, begin, length in parts if length > 0]


async def test_timelines_and_queues_are_sums_over_all_results(
    arena: Arena, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 40 tasks a second the CPUs of round robin fall far behind its GPUs."""
    await whole(arena, "round_robin", "oracle")
    spec = {"cluster": {"cpus": 2, "gpus": 2}, "workload": {"arrival_rate": 40}}
    run = await completed(http, tasks=2000, **spec)
    rows = arena.store.query(
        "SELECT *, arrival_time AS arrival FROM (SELECT * FROM scheduler_results FINAL) AS r "
        "JOIN (SELECT task_id, arrival_time, size FROM tasks FINAL) AS t USING (task_id)"
    )
    own = [row for row in rows if row["scheduler"] == "round_robin"]
    clock = max(row["arrival"] for row in own)

    for start, end in ((0.0, 2.5), (clock / 2, clock / 2 + 5), (clock * 2, clock * 2 + 9)):
        shown = await get(
            http, f"/api/runs/{run}/timeline", scheduler="round_robin", start=start, end=end
        )
        columns = (shown["parts"][key] for key in ("row", "task_id", "begin", "size"))
        bars = list(zip(*columns, strict=True))
        assert sorted(bars) == sorted(
            (device, row["task_id"], begin, row["size"])
            for row in own
            for device, begin, stop in parts_of(row)
            if begin < end and stop > start
        )
        assert shown["complete"]
        for number, device in enumerate(shown["devices"]):
            busy = sum(
                max(min(stop, end) - max(begin, start), 0)
                for row in own
                for at, begin, stop in parts_of(row)
                if at == number
            )
            assert device["busy"] == pytest.approx(busy / (end - start), abs=1e-9)

    for seconds in (None, 10):
        query = {"points": 25, **({"seconds": seconds} if seconds else {})}
        tracks = (await get(http, f"/api/runs/{run}/queues", **query))["schedulers"]
        for name, track in tracks.items():
            assert track["exact"]
            assert track["time"][0] == pytest.approx(clock - seconds if seconds else 0)
            assert track["time"][-1] == clock
            for at, unfinished, waiting in zip(
                track["time"], track["unfinished"], track["waiting"], strict=True
            ):
                there = [
                    min(begin for _, begin, _ in parts_of(row))
                    for row in rows
                    if row["scheduler"] == name and row["arrival"] <= at < row["finish"]
                ]
                assert unfinished == len(there)
                assert waiting == sum(begin > at for begin in there)

    for task in (1, 700, 1999):
        body = await get(http, f"/api/runs/{run}/tasks/{task}/queues")
        for queue in body["queues"]:
            left: dict[int, list[tuple[float, float]]] = {number: [] for number in range(4)}
            for row in rows:
                if row["scheduler"] == queue["scheduler"] and row["task_id"] < task:
                    for device, begin, stop in parts_of(row):
                        if stop > body["arrival_time"]:
                            left[device].append((begin, stop))
            assert len(queue["devices"]) == 4
            for number, device in enumerate(queue["devices"]):
                at = body["arrival_time"]
                wanted = sum(stop - max(begin, at) for begin, stop in left[number])
                assert device["seconds"] == pytest.approx(wanted, abs=1e-9)
                assert device["tasks"] == len(left[number])
                assert device["waiting"] == sum(begin > at for begin, _ in left[number])

    monkeypatch.setattr(timeline, "MOST_BARS", 100)
    blocks = await get(http, f"/api/runs/{run}/timeline", scheduler="round_robin", start=0, end=24)
    assert blocks["parts"] is None
    drawn = sum(sum(map(sum, decision)) for decision in blocks["blocks"]["busy"]) * 24 / 240
    assert drawn == pytest.approx(sum(d["busy"] for d in blocks["devices"]) * 24, rel=1e-3)
    monkeypatch.setattr(device_work, "MOST_PARTS", 50)
    cut = await get(http, f"/api/runs/{run}/timeline", scheduler="round_robin", start=0, end=23)
    assert not cut["complete"]

    timeline_path = f"/api/runs/{run}/timeline"
    assert_problem(await http.get(f"{timeline_path}?start=9&end=8"), 422, "after the end")
    for bad in ("start=nan", "seconds=0", "devices=65", "offset=-1"):
        assert_problem(await http.get(f"{timeline_path}?{bad}"), 422)
    assert_problem(await http.get(f"{timeline_path}?type=tpu"), 404, "gpu, cpu")
    assert_problem(await http.get(f"/api/runs/{run}/tasks/2000/queues"), 404, "task 2000")
