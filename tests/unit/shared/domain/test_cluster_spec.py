"""Clusters in a run spec: what is allowed, and what errors say."""

from __future__ import annotations

from typing import Any

import pytest

from shared.domain.hardware.cluster_spec import MOST_DEVICES
from shared.domain.spec import RunSpec
from shared.errors import SpecError

GPU = {"type": "v100", "count": 2}
CPU = {"type": "cpu"}


def problem(cluster: dict[str, Any], **physics: Any) -> str:
    with pytest.raises(SpecError) as caught:
        RunSpec.parse({"cluster": cluster, "physics": physics})
    return str(caught.value)


def devices_of(cluster: dict[str, Any]) -> list[str]:
    platform = RunSpec.parse({"cluster": cluster}).platform
    return platform.device_names(range(len(platform)))


@pytest.mark.parametrize(
    ("cluster", "parts"),
    [
        ({"devices": [{"count": 2}]}, ["cluster.devices.0.type", "required"]),
        ({"devices": [{**GPU, "type": "2 fast"}]}, ["cluster.devices.0.type", "2 fast"]),
        ({"devices": [{**GPU, "count": 0}]}, ["cluster.devices.0.count", "1", "got 0"]),
        ({"devices": [{**GPU, "speed": -1}]}, ["cluster.devices.0.speed", "greater than 0", "-1"]),
        (
            {"devices": [{**GPU, "watts": -1}]},
            ["cluster.devices.0.watts", "greater than or equal to 0"],
        ),
        ({"devices": [{**GPU, "memory_mb": 0}]}, ["cluster.devices.0.memory_mb", "greater than 0"]),
        ({"devices": [{**GPU, "memry_mb": 1}]}, ["cluster.devices.0.memry_mb", "memory_mb"]),
        ({"devices": [GPU], "gpus": 3}, ["gpus", "`devices`", "use one form"]),
        ({"devices": [GPU, GPU]}, ["v100 in node node is listed twice", "add the counts up"]),
        (
            {"devices": [GPU, {"type": "v100", "node": "b", "speed": 2}]},
            ["device 1 is another v100", "speed is 2.0, not 1", "give it another type"],
        ),
        ({"nodes": [{"name": "a"}]}, ["nodes", "short form", "`devices`"]),
        (
            {"devices": [GPU, {**CPU, "node": "b"}], "nodes": [{"name": "node"}]},
            ["cluster.devices.1.node", "no node b", "in `nodes` are node"],
        ),
        (
            {"devices": [GPU], "nodes": [{"name": "node"}, {"name": "b"}]},
            ["cluster.nodes.1", "b has no devices"],
        ),
        (
            {"devices": [GPU], "nodes": [{"name": "node"}, {"name": "node", "count": 2}]},
            ["cluster.nodes.1", "node is the name of two nodes"],
        ),
        (
            {
                "devices": [{**CPU, "node": "a-1"}, {**GPU, "node": "a"}],
                "nodes": [{"name": "a-1"}, {"name": "a", "count": 2}],
            },
            ["cluster.nodes.1", "a-1 is the name of two nodes", "rename one"],
        ),
        (
            {"devices": [{**GPU, "count": 1000}], "nodes": [{"name": "node", "count": 101}]},
            ["101,000 devices; at most 100,000"],
        ),
        ({"devices": [GPU], "network": {"latency_s": -1}}, ["cluster.network.latency_s"]),
        ({"devices": [GPU], "network": {"bandwidth_mb_s": 0}}, ["cluster.network.bandwidth_mb_s"]),
    ],
)
def test_an_error_names_the_field_and_what_is_allowed(
    cluster: dict[str, Any], parts: list[str]
) -> None:
    message = problem(cluster)
    for part in parts:
        assert part in message, message


@pytest.mark.parametrize(
    ("curves", "parts"),
    [
        ([{"sizes": [1, 2], "seconds": [1]}], ["seconds", "1 values for 2 sizes"]),
        ([{"sizes": [2, 1], "seconds": [1, 1]}], ["sizes must rise"]),
        ([{"sizes": [0], "seconds": [1]}], ["sizes", "greater than 0"]),
        ([{"sizes": [], "seconds": []}], ["sizes"]),
        ([{"sizes": [1], "seconds": [1], "type": "tpu"}], ["tpu", "allowed: cpu, v100"]),
        ([{"sizes": [1], "seconds": [1]}] * 2, ["gemm on v100 is given twice; use one curve"]),
    ],
)
def test_an_error_in_a_measured_curve_says_what_is_allowed(
    curves: list[dict[str, Any]], parts: list[str]
) -> None:
    measured = [{"kind": "gemm", "type": "v100", **curve} for curve in curves]
    message = problem({"devices": [GPU, CPU]}, measured=measured)
    assert "physics" in message
    for part in parts:
        assert part in message, message


def test_the_short_form_is_a_node_of_gpus_and_cpus() -> None:
    assert devices_of({"gpus": 2, "cpus": 2}) == ["gpu_0", "gpu_1", "cpu_0", "cpu_1"]
    assert RunSpec.parse({"cluster": {"gpu_memory_mb": 5}}).platform.types[0].memory_mb == 5


def test_the_default_cluster_is_the_seeds_node() -> None:
    platform = RunSpec().platform
    gpu, cpu = platform.types
    assert (gpu.name, gpu.count, gpu.accelerator, gpu.memory_mb) == ("gpu", 4, True, 8000)
    assert (gpu.bandwidth_mb_s, gpu.speed, gpu.speedup_slope) == (16_000, 1, 3)
    assert (gpu.watts, gpu.idle_watts, gpu.dollars_per_s) == (50, 0, 0.0001)
    assert (cpu.name, cpu.count, cpu.accelerator) == ("cpu", 1, False)
    assert (cpu.speed, cpu.speedup_slope, cpu.watts, cpu.dollars_per_s) == (1, 0, 30, 0.00002)


def test_a_type_that_begins_with_cpu_is_a_cpu_unless_it_says_otherwise() -> None:
    listed = [
        {"type": "CPU-old"},
        {"type": "cpu_like", "accelerator": True},
        {"type": "knl", "accelerator": False},
        {"type": "tpu"},
    ]
    types = RunSpec.parse({"cluster": {"devices": listed}}).platform.types
    assert [each.accelerator for each in types] == [False, True, False, True]


def test_further_entries_of_a_type_only_need_its_name_count_and_node() -> None:
    spec = RunSpec.parse(
        {
            "cluster": {
                "devices": [
                    {"type": "v100", "count": 2, "node": "a", "speed": 3, "memory_mb": 32_000},
                    {"type": "v100", "node": "b"},
                ]
            }
        }
    )
    assert [device.count for device in spec.cluster.devices] == [2, 1]
    assert spec.cluster.devices[1].speed == 3
    (kind,) = spec.platform.types
    assert (kind.count, kind.speed, kind.memory_mb) == (3, 3, 32_000)


def test_a_cluster_survives_json() -> None:
    spec = RunSpec.parse(
        {
            "cluster": {
                "devices": [{**GPU, "node": "a"}, {**CPU, "node": "a"}],
                "nodes": [{"name": "a", "count": 3}],
                "network": {"bandwidth_mb_s": 1000, "latency_s": 0.1},
            }
        }
    )
    again = RunSpec.model_validate_json(spec.model_dump_json())
    assert again == spec
    assert len(again.platform) == 9


def test_as_many_devices_as_allowed() -> None:
    spec = RunSpec.parse({"cluster": {"devices": [{"type": "gpu", "count": MOST_DEVICES}]}})
    assert len(spec.platform) == MOST_DEVICES
