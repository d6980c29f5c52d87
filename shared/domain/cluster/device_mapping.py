"""What becomes of a cluster whose devices change while it works: in forks of runs.

A device is the same if its type, its node and its number among them are. It keeps what it was
given. A device that is gone finishes that too, since the results are known, but takes nothing new.
A new device is idle from the moment of the change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from shared.domain.cluster.observation import Observation
from shared.domain.cluster.virtual_cluster import Cluster
from shared.domain.hardware.platform import NOWHERE, Platform

Value = TypeVar("Value")

Place = tuple[str, str, int]  # type, node, and number among these


@dataclass(frozen=True, slots=True)
class DeviceMapping:
    """For each device, and each meter, of the platform after: its number before, or NOWHERE."""

    devices: list[int]
    meters: list[int]
    count_before: int

    @classmethod
    def between(cls, before: Platform, after: Platform) -> DeviceMapping:
        number = {place: each for each, place in enumerate(_places(before))}
        devices = [number.get(place, NOWHERE) for place in _places(after)]
        if len(before.meters) == len(before) and len(after.meters) == len(after):
            meters = devices
        else:
            groups = {(each.type, each.node): at for at, each in enumerate(before.meters)}
            meters = [groups.get((each.type, each.node), NOWHERE) for each in after.meters]
        return cls(devices, meters, len(before))

    @property
    def unchanged(self) -> bool:
        return self.devices == list(range(self.count_before))

    @property
    def number_after(self) -> list[int]:
        """For each device before: its number after, or NOWHERE."""
        after = [NOWHERE] * self.count_before
        for number, before in enumerate(self.devices):
            if before != NOWHERE:
                after[before] = number
        return after

    def busy(self, busy: list[float]) -> list[float]:
        return [busy[meter] if meter != NOWHERE else 0.0 for meter in self.meters]

    def cluster(self, cluster: Cluster) -> Cluster:
        free = cluster.free
        return replace(
            cluster,
            free=[free[each] if each != NOWHERE else cluster.clock for each in self.devices],
            gaps=self._by_device(cluster.gaps),
        )

    def observation(self, observation: Observation) -> Observation:
        expected = self.cluster(observation.expected)
        late, parts = self._by_device(observation.late), self._by_device(observation.parts)
        return Observation(expected, late, parts)

    def _by_device(self, values: dict[int, Value]) -> dict[int, Value]:
        after = self.number_after
        return {after[each]: value for each, value in values.items() if after[each] != NOWHERE}


def _places(platform: Platform) -> list[Place]:
    counts: dict[tuple[str, str], int] = {}
    places = []
    for kind, node in zip(platform.type_of, platform.node_of, strict=True):
        name, host = platform.types[int(kind)].name, platform.node_names[int(node)]
        number = counts[name, host] = counts.get((name, host), -1) + 1
        places.append((name, host, number))
    return places


def same_devices(one: Platform, other: Platform) -> bool:
    """Whether both have the same devices, and count their work in the same way."""
    return (
        one.types == other.types
        and one.node_names == other.node_names
        and np.array_equal(one.type_of, other.type_of)
        and np.array_equal(one.node_of, other.node_of)
    )
