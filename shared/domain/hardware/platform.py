"""A cluster as arrays: the devices, their types and nodes, and where task times come from.

Devices are numbered in the order of the spec's list: all of its first entry, node by node, then all
of the second. In the short form the GPUs come first, so GPU 0 is device 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.domain.hardware.cluster_spec import Cluster, Device, numbered
from shared.domain.hardware.measured_times import Curve, MeasuredTimes
from shared.domain.tasks import Bools, Floats, Integers

NOWHERE = -1  # instead of a device's or a node's number

# Work is counted for each device up to this number of devices; beyond it, for each type of a node,
# or for each type.
MOST_METERS = 256


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a device has that its entry leaves out."""

    memory_mb: float
    bandwidth_mb_s: float
    speedup_slope: float
    watts: float
    dollars_per_s: float


@dataclass(frozen=True, slots=True)
class DeviceType:
    """What equal devices share."""

    name: str
    accelerator: bool
    memory_mb: float  # infinite: unlimited
    bandwidth_mb_s: float  # infinite: no transfer
    speed: float
    speedup_slope: float
    watts: float
    idle_watts: float
    dollars_per_s: float
    count: int


@dataclass(frozen=True, slots=True)
class Meter:
    """Whose work is added up: a device's, or that of the devices of a type."""

    name: str
    type: str
    node: str  # empty: of several nodes
    devices: int


class Platform:
    def __init__(
        self,
        devices: Sequence[Device],
        node_counts: dict[str, int],
        defaults: dict[bool, Defaults],
        curves: Sequence[Curve] = (),
    ) -> None:
        """`defaults` of accelerators (True) and of CPUs (False)."""
        self.node_names = _node_names(node_counts)
        first_node = dict(zip(node_counts, np.cumsum([0, *node_counts.values()]), strict=False))
        names = list(dict.fromkeys(device.type for device in devices))
        type_of, node_of = [], []
        for device in devices:
            replicas = node_counts[device.node]
            type_of.append(np.full(replicas * device.count, names.index(device.type)))
            nodes = first_node[device.node] + np.arange(replicas)
            node_of.append(np.repeat(nodes, device.count))
        self.type_of: Integers = np.concatenate(type_of).astype(np.int64)
        self.node_of: Integers = np.concatenate(node_of).astype(np.int64)
        counts = np.bincount(self.type_of, minlength=len(names))
        described = {device.type: device for device in reversed(devices)}
        self.types = tuple(
            _device_type(described[name], defaults, int(counts[number]))
            for number, name in enumerate(names)
        )
        self.memory_mb: Floats = np.array([each.memory_mb for each in self.types])
        self.bandwidth_mb_s: Floats = np.array([each.bandwidth_mb_s for each in self.types])
        self.watts: Floats = np.array([each.watts for each in self.types])
        self.idle_watts: Floats = np.array([each.idle_watts for each in self.types])
        self.dollars_per_s: Floats = np.array([each.dollars_per_s for each in self.types])
        self.counts: Integers = counts.astype(np.int64)
        by_node = np.argsort(self.node_of, kind="stable")
        # The devices of each type, node by node, and where each device is in its list.
        self.of_type = [by_node[self.type_of[by_node] == number] for number in range(len(names))]
        self._position = np.zeros(len(self.type_of), np.int64)
        for same in self.of_type:
            self._position[same] = np.arange(len(same))
        self._accelerator = np.array([each.accelerator for each in self.types])[self.type_of]
        self.accelerators: Integers = np.flatnonzero(self._accelerator)
        self.cpus: Integers = np.flatnonzero(~self._accelerator)
        # The CPUs sorted by node, and where in that list the CPUs of each node are.
        self._cpus_by_node = self.cpus[np.argsort(self.node_of[self.cpus], kind="stable")]
        self._cpu_count = np.bincount(self.node_of[self.cpus], minlength=len(self.node_names))
        self._cpu_first = np.cumsum(self._cpu_count) - self._cpu_count
        self._place = _places(self.of_type, self.node_of, len(self.node_names))
        self.meters, self.meter_of = self._make_meters()
        self.pairs = self._make_pairs()
        # What a task of each pair is bound to: the accelerators, else the CPUs, of those nodes.
        self.pair_devices = [
            self._in_turns(host if kind == NOWHERE else kind, nodes)
            for kind, host, nodes in self.pairs
        ]
        # The types of accelerator and CPU, where one node has one of each: there it makes no
        # difference to a task which device it is on.
        self.only_pair: tuple[int, int] | None = None
        if len(self.pairs) == 1 and len(self.node_names) == 1 and len(self.types) == 2:
            self.only_pair = self.pairs[0][:2]
        self.measured = MeasuredTimes(curves, names) if curves else None

    def __len__(self) -> int:
        return len(self.type_of)

    def number_of(self, name: str) -> int:
        """The number of a device type."""
        return next(number for number, each in enumerate(self.types) if each.name == name)

    def misnamed(self, numbers: Integers | Floats, *, accelerator: bool) -> Bools:
        """Which of the numbers are neither NOWHERE nor that of an accelerator, or of a CPU."""
        known = (numbers >= 0) & (numbers < len(self))
        index = np.where(known, numbers, 0).astype(np.int64)
        right = known & (index == numbers) & (self._accelerator[index] == accelerator)
        wrong: Bools = (numbers != NOWHERE) & ~right
        return wrong

    def rotate(self, task_id: Integers) -> Integers:
        """The accelerators in rotation by task id."""
        if len(self.accelerators) == 0:
            return np.full(len(task_id), NOWHERE)
        return self.accelerators[task_id % len(self.accelerators)]

    def rotate_within(self, kind: Integers, task_id: Integers) -> Integers:
        """The devices of each task's type in rotation by task id."""
        chosen = np.empty(len(task_id), np.int64)
        for number in np.unique(kind):
            rows, same = kind == number, self.of_type[number]
            chosen[rows] = same[task_id[rows] % len(same)]
        return chosen

    def cpu_beside(self, device: Integers, task_id: Integers) -> Integers:
        """A CPU of the device's node, in rotation by task id; any CPU where there is no device."""
        if len(self.cpus) == 0:
            return np.full(len(task_id), NOWHERE)
        anywhere = self.cpus[task_id % len(self.cpus)]
        if len(self.node_names) == 1:
            return anywhere
        node = self.node_of[np.maximum(device, 0)]
        count = self._cpu_count[node]
        position = self._cpu_first[node] + task_id % np.maximum(count, 1)
        beside = np.where(
            count > 0, self._cpus_by_node[np.minimum(position, len(self.cpus) - 1)], NOWHERE
        )
        return np.where(device == NOWHERE, anywhere, beside)

    def complete(
        self,
        task_id: Integers,
        share: Floats,
        device: NDArray[np.integer] | None = None,
        cpu: NDArray[np.integer] | None = None,
    ) -> tuple[Integers, Integers]:
        """The device and CPU of each decision: what the policy chose, else the rotation."""
        device = _filled(device, self.rotate, task_id)
        # A task without an accelerator's part is not bound to a node.
        bound_to = np.where(share > 0, device, NOWHERE)
        cpu = _filled(cpu, lambda ids: self.cpu_beside(bound_to, ids), task_id)
        return device, cpu

    def gang(self, device: int, width: int) -> list[int]:
        """The devices that a task of this width takes: that one and the next of its type, node by
        node, then the first ones. A task wider than that fails, and takes all of them."""
        same = self.of_type[self.type_of[device]]
        steps = np.arange(min(width, len(same)))
        devices: list[int] = same[(self._position[device] + steps) % len(same)].tolist()
        return devices

    def widest(self, kind: str) -> int:
        """The most devices that can run a task of that kind at once."""
        if self.measured is None:
            return int(self.counts.max())
        return max((int(self.counts[number]) for number in self.measured.types_of(kind)), default=0)

    def pick(self, kind: int, node: Integers, turn: Integers) -> Integers:
        """A device of that type in each of these nodes, which have one; they take turns."""
        first, count = self._place[kind]
        return np.asarray(self.of_type[kind][first[node] + turn % count[node]])

    def has(self, kind: int, node: Integers) -> Bools:
        """Which of these nodes have a device of that type."""
        return np.asarray(self._place[kind][1][node] > 0)

    def _in_turns(self, kind: int, nodes: Integers) -> Integers:
        """The devices of that type in these nodes: one of each node, then the next of each."""
        devices = self.of_type[kind]
        devices = devices[np.isin(self.node_of[devices], nodes)]
        node = self.node_of[devices]
        turn = self._position[devices] - self._place[kind][0][node]
        return np.asarray(devices[np.lexsort((node, turn))])

    def _make_pairs(self) -> list[tuple[int, int, Integers]]:
        """The types of accelerator and CPU that some node has both of, and these nodes. Where
        nodes have only one of the two, the other is NOWHERE."""
        nodes = np.arange(len(self.node_names))
        kinds = [number for number, each in enumerate(self.types) if each.accelerator]
        hosts = [number for number, each in enumerate(self.types) if not each.accelerator]
        bare = ~np.logical_or.reduce([self.has(kind, nodes) for kind in kinds], initial=False)
        alone = ~np.logical_or.reduce([self.has(host, nodes) for host in hosts], initial=False)
        pairs = [
            *((kind, host, nodes[self.has(kind, nodes) & self.has(host, nodes)])
              for kind in kinds for host in hosts),
            *((kind, NOWHERE, nodes[self.has(kind, nodes) & alone]) for kind in kinds),
            *((NOWHERE, host, nodes[self.has(host, nodes) & bare]) for host in hosts),
        ]  # fmt: skip
        return [pair for pair in pairs if len(pair[2])]

    def _make_meters(self) -> tuple[tuple[Meter, ...], Integers]:
        if len(self) <= MOST_METERS:
            names = self.device_names(range(len(self)))
            kinds = [self.types[kind].name for kind in self.type_of]
            nodes = [self.node_names[node] for node in self.node_of]
            meters = map(Meter, names, kinds, nodes, [1] * len(self))
            return tuple(meters), np.arange(len(self), dtype=np.int64)
        pairs = self.type_of * len(self.node_names) + self.node_of
        groups, meter_of, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        if len(groups) <= MOST_METERS:
            meters = map(self._group, *np.divmod(groups, len(self.node_names)), counts)
            return tuple(meters), meter_of.astype(np.int64)
        return tuple(Meter(each.name, each.name, "", each.count) for each in self.types), (
            self.type_of
        )

    def _group(self, kind: int, node: int, count: int) -> Meter:
        name, place = self.types[kind].name, self.node_names[node]
        return Meter(self._in_node(name, node), name, place, int(count))

    def device_names(self, devices: Iterable[int]) -> list[str]:
        """`gpu_0`, or `rack-3/gpu_0` where there are several nodes."""
        names = []
        for device in devices:
            kind, node = int(self.type_of[device]), int(self.node_of[device])
            number = int(self._position[device] - self._place[kind][0][node])
            names.append(self._in_node(f"{self.types[kind].name}_{number}", node))
        return names

    def _in_node(self, name: str, node: int) -> str:
        return name if len(self.node_names) == 1 else f"{self.node_names[node]}/{name}"


def _filled(
    chosen: NDArray[np.integer] | None, rotation: Callable[[Integers], Integers], task_id: Integers
) -> Integers:
    """The chosen devices, and those of the rotation where none was chosen."""
    if chosen is None:
        return rotation(task_id)
    numbers = np.asarray(chosen, np.int64)
    nowhere = numbers == NOWHERE
    return np.where(nowhere, rotation(task_id), numbers) if nowhere.any() else numbers


def make_platform(
    cluster: Cluster, defaults: dict[bool, Defaults], curves: Sequence[Curve]
) -> Platform:
    short_form = (
        Device(type="gpu", count=cluster.gpus, memory_mb=cluster.gpu_memory_mb),
        Device(type="cpu", count=cluster.cpus),
    )
    return Platform(cluster.devices or short_form, cluster.node_counts, defaults, curves)


def _device_type(device: Device, defaults: dict[bool, Defaults], count: int) -> DeviceType:
    default = defaults[device.is_accelerator]

    def value_of(name: str) -> float:
        value = getattr(device, name)
        return float(getattr(default, name) if value is None else value)

    return DeviceType(
        name=device.type,
        accelerator=device.is_accelerator,
        memory_mb=value_of("memory_mb"),
        bandwidth_mb_s=value_of("bandwidth_mb_s"),
        speed=float(device.speed),
        speedup_slope=value_of("speedup_slope"),
        watts=value_of("watts"),
        idle_watts=float(device.idle_watts),
        dollars_per_s=value_of("dollars_per_s"),
        count=count,
    )


def _node_names(node_counts: dict[str, int]) -> tuple[str, ...]:
    return tuple(name for node, count in node_counts.items() for name in numbered(node, count))


def _places(
    of_type: list[Integers], node_of: Integers, nodes: int
) -> list[tuple[Integers, Integers]]:
    """For each type: the position of each node's first device in `of_type`, and their number."""
    places = []
    for devices in of_type:
        count = np.bincount(node_of[devices], minlength=nodes)
        first = np.searchsorted(node_of[devices], np.arange(nodes))
        places.append((first, count))
    return places
