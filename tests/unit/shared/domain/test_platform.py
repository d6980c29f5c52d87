"""Devices as arrays: their numbers, names, meters, and who takes turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared.domain.hardware.platform import MOST_METERS, NOWHERE, Platform
from shared.domain.spec import RunSpec


def platform_of(cluster: dict[str, Any]) -> Platform:
    return RunSpec.parse({"cluster": cluster}).platform


# Two nodes a with 2 GPUs and a CPU, a node b with a GPU, a TPU and no CPU, a node c with a CPU:
#   0 1 (a-0) 2 3 (a-1): gpu    4: gpu of b    5: tpu of b    6 (a-0) 7 (a-1): cpu    8: cpu of c
RACK = {
    "devices": [
        {"type": "gpu", "count": 2, "node": "a"},
        {"type": "gpu", "node": "b"},
        {"type": "tpu", "node": "b"},
        {"type": "cpu", "node": "a"},
        {"type": "cpu", "node": "c"},
    ],
    "nodes": [{"name": "a", "count": 2}, {"name": "b"}, {"name": "c"}],
}
IDS = np.arange(12)


def test_devices_are_numbered_in_the_order_of_the_list_node_by_node() -> None:
    rack = platform_of(RACK)
    assert rack.node_names == ("a-0", "a-1", "b", "c")
    assert rack.type_of.tolist() == [0, 0, 0, 0, 0, 1, 2, 2, 2]
    assert rack.node_of.tolist() == [0, 0, 1, 1, 2, 2, 0, 1, 3]
    assert rack.accelerators.tolist() == [0, 1, 2, 3, 4, 5]
    assert rack.cpus.tolist() == [6, 7, 8]
    assert rack.counts.tolist() == [5, 1, 3]
    assert len(rack) == 9
    assert [rack.number_of(name) for name in ("gpu", "tpu", "cpu")] == [0, 1, 2]


def test_names_are_of_the_type_its_number_in_the_node_and_the_node() -> None:
    assert platform_of(RACK).device_names(range(9)) == [
        *("a-0/gpu_0", "a-0/gpu_1", "a-1/gpu_0", "a-1/gpu_1", "b/gpu_0", "b/tpu_0"),
        *("a-0/cpu_0", "a-1/cpu_0", "c/cpu_0"),
    ]


def test_numbers_that_name_no_accelerator_or_no_cpu_are_found() -> None:
    rack = platform_of(RACK)
    numbers = np.array([NOWHERE, 0, 5, 6, 8, 9, -2])
    expected = [False, False, False, True, True, True, True]
    assert rack.misnamed(numbers, accelerator=True).tolist() == expected
    expected = [False, True, True, False, False, True, True]
    assert rack.misnamed(numbers, accelerator=False).tolist() == expected
    fractions = np.array([1.0, 1.5, np.nan, np.inf])
    assert rack.misnamed(fractions, accelerator=True).tolist() == [False, True, True, True]


def test_the_accelerators_take_turns_by_task_id() -> None:
    assert platform_of(RACK).rotate(IDS).tolist() == [0, 1, 2, 3, 4, 5] * 2
    assert platform_of({}).rotate(np.array([0, 5, 7])).tolist() == [0, 1, 3]


def test_the_devices_of_a_type_take_turns_by_task_id() -> None:
    kinds = np.array([0, 0, 2, 2, 1, 0])
    found = platform_of(RACK).rotate_within(kinds, np.array([0, 6, 1, 3, 9, 4]))
    assert found.tolist() == [0, 1, 7, 6, 5, 4]


def test_the_cpu_beside_a_device_is_one_of_its_node() -> None:
    rack = platform_of(RACK)
    devices = np.array([0, 1, 2, 3, 4, NOWHERE, NOWHERE])
    found = rack.cpu_beside(devices, np.array([0, 1, 2, 3, 4, 1, 2]))
    # Node b has none; a task that is on no device may use any CPU.
    assert found.tolist() == [6, 6, 7, 7, NOWHERE, 7, 8]
    two = platform_of({"cpus": 2, "gpus": 3})
    assert two.cpu_beside(np.zeros(4, int), np.arange(4)).tolist() == [3, 4, 3, 4]


def test_a_decision_is_completed_row_by_row() -> None:
    rack = platform_of(RACK)
    share = np.array([1.0, 0.5, 0.0, 1.0])
    device, cpu = rack.complete(np.arange(4), share)
    assert device.tolist() == [0, 1, 2, 3]
    assert cpu.tolist() == [6, 6, 8, 7]  # without an accelerator's part: any CPU
    device, cpu = rack.complete(
        np.arange(4), share, np.array([5, NOWHERE, 3, 0]), np.array([8, NOWHERE, NOWHERE, 7])
    )
    assert device.tolist() == [5, 1, 3, 0]
    assert cpu.tolist() == [8, 6, 8, 7]


def test_a_cluster_without_accelerators_or_cpus_has_none_to_choose() -> None:
    gpus = platform_of({"devices": [{"type": "gpu", "count": 2}]})
    cpus = platform_of({"devices": [{"type": "cpu", "count": 2}]})
    share = np.array([1.0, 0.0])
    assert [each.tolist() for each in gpus.complete(np.arange(2), share)] == [[0, 1], [-1, -1]]
    assert [each.tolist() for each in cpus.complete(np.arange(2), share)] == [[-1, -1], [0, 1]]


@pytest.mark.parametrize(
    ("device", "width", "gang"),
    [
        (0, 1, [0]),
        (1, 2, [1, 2]),
        (4, 3, [4, 0, 1]),  # wraps around
        (8, 3, [8, 6, 7]),
        (2, 5, [2, 3, 4, 0, 1]),
        (2, 9, [2, 3, 4, 0, 1]),  # no more than there are
        (5, 1, [5]),
    ],
)
def test_a_wide_task_takes_the_next_devices_of_its_type(
    device: int, width: int, gang: list[int]
) -> None:
    assert platform_of(RACK).gang(device, width) == gang


def test_a_gang_goes_on_in_node_order_whatever_the_order_of_the_list() -> None:
    # Devices 0 and 1 are in node b, which is behind a.
    mixed = platform_of(
        {
            "devices": [{"type": "gpu", "count": 2, "node": "b"}, {"type": "gpu", "node": "a"}],
            "nodes": [{"name": "a"}, {"name": "b"}],
        }
    )
    assert mixed.gang(2, 3) == [2, 0, 1]
    assert mixed.gang(0, 3) == [0, 1, 2]


def test_pairs_are_the_types_that_a_node_has_both_of() -> None:
    pairs = [(kind, host, nodes.tolist()) for kind, host, nodes in platform_of(RACK).pairs]
    assert pairs == [
        (0, 2, [0, 1]),
        (0, NOWHERE, [2]),
        (1, NOWHERE, [2]),
        (NOWHERE, 2, [3]),
    ]
    (pair,) = platform_of({}).pairs
    assert pair[:2] == (0, 1)


def test_a_device_of_a_type_in_a_node_is_picked_in_turns() -> None:
    rack = platform_of(RACK)
    nodes = np.array([0, 0, 0, 1, 2])
    assert rack.pick(0, nodes, np.array([0, 1, 2, 1, 7])).tolist() == [0, 1, 0, 3, 4]
    assert rack.has(1, np.arange(4)).tolist() == [False, False, True, False]


def test_each_device_has_a_meter_of_its_own_while_they_are_few() -> None:
    rack = platform_of(RACK)
    assert rack.meter_of.tolist() == list(range(9))
    assert rack.meters[4].name == "b/gpu_0"
    assert (rack.meters[4].type, rack.meters[4].node, rack.meters[4].devices) == ("gpu", "b", 1)
    assert len(platform_of({"devices": [{"type": "gpu", "count": MOST_METERS}]}).meters) == 256


def test_many_devices_share_the_meter_of_their_type_and_node() -> None:
    many = platform_of(
        {
            "devices": [
                {"type": "gpu", "count": 100, "node": "a"},
                {"type": "cpu", "count": 60, "node": "a"},
            ],
            "nodes": [{"name": "a", "count": 2}],
        }
    )
    named = [(meter.name, meter.node, meter.devices) for meter in many.meters]
    assert named == [
        ("a-0/gpu", "a-0", 100),
        ("a-1/gpu", "a-1", 100),
        ("a-0/cpu", "a-0", 60),
        ("a-1/cpu", "a-1", 60),
    ]
    assert many.meter_of[[0, 99, 100, 199, 200, 260, 319]].tolist() == [0, 0, 1, 1, 2, 3, 3]


def test_devices_in_many_nodes_share_the_meter_of_their_type() -> None:
    many = platform_of(
        {
            "devices": [{"type": "cpu", "node": "a"}, {"type": "gpu", "count": 4, "node": "a"}],
            "nodes": [{"name": "a", "count": 2000}],
        }
    )
    assert [(each.name, each.node, each.devices) for each in many.meters] == [
        ("cpu", "", 2000),
        ("gpu", "", 8000),
    ]
    assert many.meter_of.tolist() == many.type_of.tolist()


def test_copies_of_a_spec_with_another_cluster_have_another_platform() -> None:
    spec = RunSpec()
    assert spec.platform is spec.platform
    other = spec.model_copy(update={"cluster": spec.cluster.model_copy(update={"gpus": 2})})
    assert len(spec.platform) == 5
    assert len(other.platform) == 3
