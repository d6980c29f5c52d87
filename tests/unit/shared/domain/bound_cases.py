"""Clusters and tasks for tests of the bounds, and the relaxation as an independent linear program.

The program is written from the rules of the physics, task by task, with none of the project's
functions for times or bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog

from shared.domain.hardware.platform import DeviceType
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks

POLICIES = ("cpu", "page", "fail")
KINDS = ("gemm", "sort", "scan")

Row = tuple[float, float, float, float]


def tasks_of(rows: list[Row], parents: Any = (), **columns: Any) -> Tasks:
    """Rows of size, intensity, memory, arrival."""
    size, intensity, memory, arrival = np.array(rows, dtype=float).reshape(len(rows), 4).T
    return Tasks(np.arange(len(rows)), size, intensity, memory, arrival, parents, **columns)


def spec_of(cpus: int = 1, gpus: int = 4, memory: float = 8000, **physics: Any) -> RunSpec:
    cluster = {"cpus": cpus, "gpus": gpus, "gpu_memory_mb": memory}
    return RunSpec.parse({"cluster": cluster, "physics": physics})


def spec_with(devices: Sequence[Any], **physics: Any) -> RunSpec:
    return RunSpec.parse({"cluster": {"devices": list(devices)}, "physics": physics})


def curve(kind: str, device: str, seconds: float) -> dict[str, Any]:
    """That many seconds at size 1000; proportional to the size."""
    return {"kind": kind, "type": device, "sizes": [1000], "seconds": [seconds]}


@st.composite
def devices(draw: st.DrawFn, least: int, most: int) -> list[dict[str, Any]]:
    """Device types, in one node or two, with or without CPUs."""
    names = ["cpu", "a", "b", "c", "cpu_slow", "d"][: draw(st.integers(least, most))]
    if draw(st.booleans()):
        names.reverse()
    found = []
    for name in names:
        accelerator = not name.startswith("cpu")
        device: dict[str, Any] = {
            "type": name,
            "count": draw(st.integers(1, 3)),
            "node": draw(st.sampled_from(["n", "n", "m"])),
            "speed": draw(st.sampled_from([0.5, 1.0, 1.0, 3.0])),
        }
        if accelerator:
            device["memory_mb"] = draw(st.sampled_from([1000.0, 8000.0, 40_000.0]))
            device["bandwidth_mb_s"] = draw(st.sampled_from([4000.0, 16_000.0]))
        found.append(device)
    return found


@st.composite
def specs(draw: st.DrawFn, least: int = 1, most: int = 6, noise: bool = False) -> RunSpec:
    found = draw(devices(least, most))
    physics: dict[str, Any] = {
        "split": draw(st.sampled_from(["serial", "overlapped"])),
        "memory_policy": draw(st.sampled_from(POLICIES)),
        "noise": draw(st.sampled_from([0.0, 0.5])) if noise else 0.0,
    }
    if draw(st.booleans()):
        # Some kinds were never measured on some types, or on none.
        physics["measured"] = [
            curve(kind, device["type"], draw(st.floats(0.1, 10)))
            for kind in KINDS[:2]
            for device in found
            if draw(st.integers(0, 3))
        ]
    return spec_with(found, **physics)


rows = st.tuples(
    st.floats(1, 20_000), st.floats(0, 1), st.floats(0.1, 64_000), st.floats(0, 50)
)  # fmt: skip


@st.composite
def task_lists(draw: st.DrawFn, spec: RunSpec, most: int) -> Tasks:
    """In order of arrival."""
    found = sorted(draw(st.lists(rows, min_size=1, max_size=most)), key=lambda row: row[3])
    count = len(found)
    if draw(st.booleans()):
        found = [(*row[:3], 0.0) for row in found]

    def column(values: st.SearchStrategy[Any]) -> Any:
        return draw(st.lists(values, min_size=count, max_size=count))

    columns: dict[str, Any] = {}
    if spec.physics.measured:
        columns["kind"] = column(st.sampled_from(KINDS))
    if draw(st.booleans()):
        columns["width"] = np.array(column(st.integers(1, 3)))
    if draw(st.booleans()):
        columns["divisible"] = np.array(column(st.booleans()))
    if draw(st.booleans()):
        columns["home"] = np.array(column(st.integers(-1, len(spec.platform.node_names) - 1)))
    parents: Any = ()
    if draw(st.booleans()):
        parents = [
            draw(st.lists(st.integers(0, i - 1), max_size=2, unique=True)) if i else []
            for i in range(count)
        ]
    return tasks_of(found, parents, **columns)


def seconds_on(tasks: Tasks, i: int, kind: DeviceType, spec: RunSpec) -> float:
    if tasks.width is not None and tasks.width[i] > kind.count:
        return math.inf
    if spec.physics.measured:
        table = {(each.kind, each.type): each.seconds[0] for each in spec.physics.measured}
        time = table.get((tasks.kind[i], kind.name), math.inf) * tasks.size[i] / 1000
    else:
        intensity = tasks.compute_intensity[i]
        base = (tasks.size[i] / 1000) ** 1.5 / (intensity + 0.5)
        time = base / kind.speed / (1 + 3 * intensity if kind.accelerator else 1)
    return float(time + (tasks.memory_required[i] / kind.bandwidth_mb_s))


def ways(tasks: Tasks, i: int, spec: RunSpec) -> list[tuple[int, float, float]]:
    """Type, seconds of the whole task on one device, largest share."""
    types, policy = spec.platform.types, spec.physics.memory_policy
    times = [seconds_on(tasks, i, kind, spec) for kind in types]
    if not any(map(math.isfinite, times)):
        return []
    slowest = max(time for time in times if math.isfinite(time))
    nodes = {device.node for device in spec.cluster.devices}
    with_cpu = {device.node for device in spec.cluster.devices if not device.is_accelerator}
    no_cpu = nodes != with_cpu or any(
        math.isinf(time) for time, kind in zip(times, types, strict=True) if not kind.accelerator
    )
    split = (tasks.divisible is None or tasks.divisible[i]) and (
        tasks.width is None or tasks.width[i] == 1
    )
    found = []
    for number, (time, kind) in enumerate(zip(times, types, strict=True)):
        if math.isinf(time):
            if no_cpu:
                found.append((number, slowest, 1.0))
            continue
        memory, room = tasks.memory_required[i], kind.memory_mb
        if tasks.width is not None:
            room *= tasks.width[i]
        if not kind.accelerator or memory <= room:
            found.append((number, time, 1.0))
            continue
        if split:
            found.append((number, time, room / memory))
        if policy == "page":
            again = memory if split else memory - room
            found.append((number, time + again / kind.bandwidth_mb_s, 1.0))
        elif policy == "fail" or no_cpu:
            found.append((number, slowest, 1.0))
    return found


def solved(tasks: Tasks, spec: RunSpec) -> float:
    """The least C of the relaxation. One variable for each way to run each task; then C."""
    types = spec.platform.types
    variables = [(i, *way) for i in range(len(tasks)) for way in ways(tasks, i, spec)]
    runnable = sorted({i for i, *_ in variables})
    if not runnable:
        return 0.0
    loads = np.zeros((len(types), len(variables) + 1))
    whole = np.zeros((len(runnable), len(variables) + 1))
    for column, (i, kind, seconds, _) in enumerate(variables):
        width = 1 if tasks.width is None else min(tasks.width[i], types[kind].count)
        loads[kind, column] = seconds * width
        whole[runnable.index(i), column] = 1
    scale = loads.max() or 1.0
    loads /= scale
    loads[:, -1] = [-kind.count for kind in types]
    answer = linprog(
        np.append(np.zeros(len(variables)), 1.0),
        A_ub=loads,
        b_ub=np.zeros(len(types)),
        A_eq=whole,
        b_eq=np.ones(len(runnable)),
        bounds=[(0, most) for *_, most in variables] + [(0, None)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status == 0
    return float(answer.fun * scale)
