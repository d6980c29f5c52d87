"""Clusters whose devices change while they work."""

from __future__ import annotations

from typing import Any

from shared.domain.cluster.device_mapping import DeviceMapping, same_devices
from shared.domain.cluster.observation import Observation
from shared.domain.cluster.virtual_cluster import Cluster
from shared.domain.hardware.platform import Platform
from shared.domain.spec import RunSpec


def platform(*devices: tuple[str, int], nodes: tuple[dict[str, Any], ...] = ()) -> Platform:
    listed = [{"type": kind, "count": count} for kind, count in devices]
    if nodes:
        listed = [each | {"node": "rack"} for each in listed]
    return RunSpec.parse({"cluster": {"devices": listed, "nodes": list(nodes)}}).platform


BEFORE = platform(("cpu", 2), ("gpu", 2))  # cpu_0, cpu_1, gpu_0, gpu_1


def busy_cluster() -> Cluster:
    return Cluster([3.0, 4.0, 5.0, 6.0], {1: [(2.0, 3.0)], 3: [(4.0, 5.0)]}, clock=2.5, next_task=9)


def test_a_new_device_is_idle_and_the_others_keep_their_queues() -> None:
    mapping = DeviceMapping.between(BEFORE, platform(("cpu", 2), ("gpu", 3)))
    cluster = mapping.cluster(busy_cluster())
    assert cluster.free == [3.0, 4.0, 5.0, 6.0, 2.5]
    assert cluster.gaps == {1: [(2.0, 3.0)], 3: [(4.0, 5.0)]}
    assert (cluster.clock, cluster.next_task) == (2.5, 9)


def test_devices_behind_a_removed_one_get_another_number() -> None:
    mapping = DeviceMapping.between(BEFORE, platform(("cpu", 1), ("gpu", 2)))
    cluster = mapping.cluster(busy_cluster())
    assert cluster.free == [3.0, 5.0, 6.0]
    assert cluster.gaps == {2: [(4.0, 5.0)]}
    assert mapping.number_after == [0, -1, 1, 2]
    assert mapping.busy([1.0, 2.0, 3.0, 4.0]) == [1.0, 3.0, 4.0]


def test_another_type_is_another_device() -> None:
    mapping = DeviceMapping.between(BEFORE, platform(("cpu", 2), ("tpu", 2)))
    assert mapping.devices == [0, 1, -1, -1]


def test_nodes_that_are_added_keep_the_devices_of_the_others() -> None:
    before = platform(("cpu", 1), ("gpu", 1), nodes=({"name": "rack", "count": 2},))
    after = platform(("cpu", 1), ("gpu", 1), nodes=({"name": "rack", "count": 3},))
    assert DeviceMapping.between(before, after).devices == [0, 1, -1, 2, 3, -1]


def test_what_the_scheduler_knows_moves_with_the_devices() -> None:
    seen = Observation(busy_cluster(), {1: 0.5, 2: 0.25}, {1: [(4, 4, 1)], 2: [(5, 5.5, 1)]})
    mapping = DeviceMapping.between(BEFORE, platform(("cpu", 1), ("gpu", 2)))
    moved = mapping.observation(seen)
    assert moved.expected.free == [3.0, 5.0, 6.0]
    assert (moved.late, moved.parts) == ({1: 0.25}, {1: [(5, 5.5, 1)]})


def test_another_price_is_another_platform_with_the_same_places() -> None:
    dear = RunSpec.parse(
        {
            "cluster": {
                "devices": [{"type": "cpu", "count": 2}, {"type": "gpu", "count": 2, "watts": 9}]
            }
        }
    ).platform
    assert not same_devices(BEFORE, dear)
    assert DeviceMapping.between(BEFORE, dear).unchanged
