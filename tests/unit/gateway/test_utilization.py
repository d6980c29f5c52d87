from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from services.gateway.analysis.device_work import joined, with_features
from services.gateway.analysis.schemas import Utilization
from services.gateway.analysis.utilization import shares, utilization
from shared.domain.spec import RunSpec

SPEC = RunSpec.parse({"schedulers": ["a"], "cluster": {"cpus": 2, "gpus": 1}})

Part = tuple[int, int, float, float]  # task, device, begin, length


def of_a_minute(
    spec: RunSpec, gpu: list[Part], cpu: list[Part], widths: dict[int, int] | None = None
) -> Utilization:
    names, tasks = ("task_id", "device", "begin", "length"), list(widths or {})
    features = pa.table(
        {"task_id": tasks, "size": [1.0] * len(tasks), "width": list((widths or {}).values())}
    )
    parts = []
    for rows in (gpu, cpu):
        columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
        flags = {name: [False] * len(rows) for name in ("split", "failed")}
        table = pa.table({**columns, **flags})
        parts.append(with_features(table, features if tasks else None, spec.platform))
    return utilization("r", "a", spec.platform, 0.0, 60.0, joined(parts, complete=True))


def test_parts_fill_the_steps_they_lie_in() -> None:
    """On one device from 8 to 12 and from 19 to 40, on two others of one meter from 20 to 25; in
    steps of ten seconds from 10 to 40."""
    result = shares(
        begin=np.array([8.0, 19.0, 20.0]),
        length=np.array([4.0, 21.0, 5.0]),
        meter=np.array([0, 0, 1]),
        edges=np.array([10.0, 20, 30, 40]),
        devices=np.array([1, 2]),
    )
    assert result == pytest.approx(np.array([[0.3, 1, 1], [0, 0.25, 0]]))


def test_an_empty_window_is_idle() -> None:
    one = np.array([1])
    result = shares(np.array([0.0]), np.array([1.0]), np.array([0]), np.zeros(4), one)
    assert result.tolist() == [[0, 0, 0]]


def test_each_device_has_its_own_utilisation() -> None:
    """Task 0 on CPU 0 for 30 s, tasks 1 and 3 on CPU 1 for 15 s each, the GPU for 6 s; of 60 s.
    Task 3 is of a version that did not store the CPU: they took turns by task id."""
    cpu = [(0, 1, 0.0, 30.0), (1, 2, 0.0, 15.0), (3, -1, 15.0, 15.0)]
    result = of_a_minute(SPEC, [(1, 0, 54.0, 6.0)], cpu)
    assert {device.name: device.utilization for device in result.devices} == pytest.approx(
        {"cpu_0": 0.5, "cpu_1": 0.5, "gpu_0": 0.1}
    )
    assert result.average == pytest.approx(1.1 / 3)
    assert result.step == 2
    assert result.devices[0].busy == [0.0] * 27 + [1.0] * 3


def test_a_wide_task_works_on_all_of_its_devices() -> None:
    """Two nodes with two V100 and a CPU each: a task of width 3 takes 30 s of 60 from the second
    V100 of the first node on."""
    devices = [{"type": "v100", "count": 2}, {"type": "cpu"}]
    nodes = [{"name": "node", "count": 2}]
    spec = RunSpec.parse({"schedulers": ["a"], "cluster": {"devices": devices, "nodes": nodes}})
    gpu = [(0, 1, 0.0, 30.0), (1, 0, 30.0, 15.0)]
    result = of_a_minute(spec, gpu, [], widths={0: 3, 1: 1})
    used = {(device.name, device.node): device.utilization for device in result.devices}
    assert used == pytest.approx(
        {
            ("node-0/v100_0", "node-0"): 0.25,
            ("node-0/v100_1", "node-0"): 0.5,
            ("node-1/v100_0", "node-1"): 0.5,
            ("node-1/v100_1", "node-1"): 0.5,
            ("node-0/cpu_0", "node-0"): 0,
            ("node-1/cpu_0", "node-1"): 0,
        }
    )


def test_a_large_cluster_is_shown_by_type_and_node() -> None:
    """300 accelerators of one node: 30 of them work for half of the time."""
    cluster = {"devices": [{"type": "tpu", "count": 300}, {"type": "cpu", "count": 100}]}
    spec = RunSpec.parse({"schedulers": ["a"], "cluster": cluster})
    result = of_a_minute(spec, [(task, task, 10.0, 30.0) for task in range(30)], [])
    found = [(each.name, each.type, each.devices, each.utilization) for each in result.devices]
    assert found == [("tpu", "tpu", 300, pytest.approx(0.05)), ("cpu", "cpu", 100, 0)]
    assert result.average == pytest.approx(15 / 400)
