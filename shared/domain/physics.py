"""The time, energy and cost of a decision: pure, vectorised functions.

With the seconds of the whole task on the accelerator (G) and on the CPU (C), and the share f:

    accelerator's part  g = f G        CPU's part  c = (1 - f) C

The execution time is g + c when the parts run one after the other, max(g, c) when they overlap.
Energy and cost are those of the devices while they work on it. On another node than the one its
data is on, both G and C include moving the data there. A task that may not be split, or whose two
devices are in different nodes, runs where the larger part would.

A task that fails has to be run again: it is charged what it takes on the slowest device type that
can run it, with its data moved there, so that failing is never a way to be fast.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shared.domain.hardware.platform import NOWHERE, Platform
from shared.domain.spec import RunSpec
from shared.domain.tasks import Bools, Decisions, Floats, Integers, Tasks
from shared.domain.times import real_seconds

JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True, slots=True)
class Price:
    """One row per decision."""

    gpu_time: Floats  # seconds of the accelerator's part
    cpu_time: Floats
    time: Floats
    energy: Floats
    cost: Floats
    cost_cloud: Floats
    cost_electricity: Floats
    failed: Bools
    best: Floats  # seconds of the whole task on the fastest device type


@dataclass(slots=True)
class _Parts:
    """The pair of devices that tasks are divided between, and what limits the division."""

    on_gpu: Floats  # seconds of the whole task; infinite: impossible
    on_cpu: Floats
    memory: Floats  # MB of the task
    room: Floats | float  # MB of the accelerators that it takes
    bandwidth: Floats | float
    may_split: Bools | None  # None: all tasks
    policy: str
    gpu_can: Bools = field(init=False)
    cpu_can: Bools = field(init=False)
    both_can: bool = field(init=False)  # all tasks

    def __post_init__(self) -> None:
        self.gpu_can, self.cpu_can = np.isfinite(self.on_gpu), np.isfinite(self.on_cpu)
        self.both_can = bool(self.gpu_can.all() and self.cpu_can.all())

    def allowed(self, share: Floats) -> Floats:
        """The share, or 0 or 1 where the task cannot be split or run on both."""
        if self.may_split is not None:
            share = np.where(self.may_split, share, np.where(share >= 0.5, 1.0, 0.0))
        if not self.both_can:
            both = self.gpu_can & self.cpu_can
            share = np.where(both, share, np.where(self.gpu_can, 1.0, 0.0))
        return share

    def divide(self, share: Floats) -> tuple[Floats, Floats, Bools]:
        """Seconds of both parts of an allowed share, and which tasks fail (whatever seconds)."""
        failed = np.zeros(len(share), np.bool_) if self.both_can else ~(self.gpu_can | self.cpu_can)
        overflow = np.maximum(share * self.memory - self.room, 0.0)
        if self.policy == "cpu":
            too_big = overflow > 0
            share = np.where(too_big & self.cpu_can, 0.0, share)
            if not self.both_can:
                failed |= too_big & ~self.cpu_can
        elif self.policy == "fail":
            failed |= overflow > 0
        if self.both_can:
            gpu_time, cpu_time = share * self.on_gpu, (1.0 - share) * self.on_cpu
        else:
            with np.errstate(invalid="ignore"):  # 0 times infinite, where there is no such part
                gpu_time = np.where(share > 0, share * self.on_gpu, 0.0)
                cpu_time = np.where(share < 1, (1.0 - share) * self.on_cpu, 0.0)
        if self.policy == "page":
            gpu_time = gpu_time + overflow / self.bandwidth
        return gpu_time, cpu_time, failed

    def exact_shares(self) -> list[Floats]:
        """Where the time as a function of the share has its corners: where the memory is just
        full, and where both parts end together."""
        room, memory = self.room, self.memory
        fits = room / np.maximum(memory, room)
        # Rounding may push share * memory just over the room; one step down always fits.
        fits = np.where(fits * memory > room, np.nextafter(fits, 0.0), fits)
        with np.errstate(invalid="ignore"):
            level = self.on_cpu / (self.on_cpu + self.on_gpu)
            again = memory / self.bandwidth
            paged = (self.on_cpu + room / self.bandwidth) / (self.on_cpu + self.on_gpu + again)
        return [np.nan_to_num(share, nan=0.0) for share in (fits, level, np.minimum(paged, 1.0))]


def price(
    tasks: Tasks,
    share: Floats,
    spec: RunSpec,
    device: NDArray[np.integer] | None = None,
    cpu: NDArray[np.integer] | None = None,
    *,
    times: Floats | None = None,
) -> Price:
    """Time, energy and cost of running `share` of each task on the device, the rest on the CPU.
    `times`: another matrix of seconds than the real one."""
    physics, platform = spec.physics, spec.platform
    times = real_seconds(tasks, spec) if times is None else times
    kind: Integers | int
    host: Integers | int
    if platform.only_pair is not None:
        # One node, one type of accelerator, one of CPU: which of the devices does not matter.
        kind, host = platform.only_pair
        on_gpu, on_cpu, may_split = times[:, kind], times[:, host], tasks.may_split
        on_device: Bools = share > 0
    else:
        device, cpu = platform.complete(tasks.task_id, share, device, cpu)
        kind, host = platform.type_of[device], platform.type_of[cpu]
        on_gpu = _seconds_on(device, kind, times, tasks, spec)
        on_cpu = _seconds_on(cpu, host, times, tasks, spec)
        may_split = _may_split(tasks, spec, device, cpu)
        on_device = (device != NOWHERE) & ((share > 0) | (cpu == NOWHERE))
    parts = _Parts(
        on_gpu,
        on_cpu,
        tasks.memory_required,
        _room(platform.memory_mb[kind], tasks),
        platform.bandwidth_mb_s[kind],
        may_split,
        physics.memory_policy,
    )
    gpu_time, cpu_time, failed = parts.divide(parts.allowed(share))
    if failed.any():
        charge = _failure_charge(tasks, spec, times)
        gpu_time = np.where(failed, np.where(on_device, charge, 0.0), gpu_time)
        cpu_time = np.where(failed, np.where(on_device, 0.0, charge), cpu_time)
    energy = platform.watts[kind] * gpu_time + platform.watts[host] * cpu_time
    if tasks.width is not None:
        energy = energy * tasks.width
    best = times.T.min(axis=0)
    return price_of_parts(tasks, spec, kind, host, gpu_time, cpu_time, energy, failed, best)


def price_of_parts(
    tasks: Tasks,
    spec: RunSpec,
    kind: Integers | int,
    host: Integers | int,
    gpu_time: Floats,
    cpu_time: Floats,
    energy: Floats,
    failed: Bools,
    best: Floats,
) -> Price:
    """What it comes to that the two parts of each task take these seconds, computed or measured, on
    these types of accelerator and CPU."""
    physics, dollars = spec.physics, spec.platform.dollars_per_s
    cloud = dollars[kind] * gpu_time + dollars[host] * cpu_time
    if tasks.width is not None:
        cloud = cloud * tasks.width
    electricity = energy / JOULES_PER_KWH * physics.dollars_per_kwh
    return Price(
        gpu_time=gpu_time,
        cpu_time=cpu_time,
        time=execution_time(gpu_time, cpu_time, spec),
        energy=energy,
        cost=cloud if physics.cost_model == "cloud" else electricity,
        cost_cloud=cloud,
        cost_electricity=electricity,
        failed=failed,
        best=best,
    )


def whole_seconds(tasks: Tasks, spec: RunSpec, times: Floats) -> Floats:
    """The seconds of each whole task (row) on each device type (column), where its data is;
    infinite: it cannot run there, or does not fit the memory and would run on a CPU instead."""
    whole = times.copy()
    for column, kind in enumerate(spec.platform.types):
        if kind.accelerator:
            overflow = np.maximum(tasks.memory_required - _room(kind.memory_mb, tasks), 0.0)
            if spec.physics.memory_policy == "page":
                whole[:, column] += overflow / kind.bandwidth_mb_s
            else:
                whole[overflow > 0, column] = np.inf
    return whole


def moving_seconds(tasks: Tasks, spec: RunSpec) -> Floats | None:
    """The seconds that moving each task's data to a node other than its home takes; None: no task
    has a home."""
    home = _home(tasks, spec)
    return None if home is None else np.where(home == NOWHERE, 0.0, _transfer(tasks, spec))


def execution_time(gpu_time: Floats, cpu_time: Floats, spec: RunSpec) -> Floats:
    if spec.physics.split == "serial":
        return gpu_time + cpu_time
    return np.maximum(gpu_time, cpu_time)


def _room(memory_mb: Floats | float, tasks: Tasks) -> Floats | float:
    """MB of the devices that each task takes."""
    return memory_mb if tasks.width is None else np.asarray(memory_mb * tasks.width, np.float64)


def _seconds_on(
    device: Integers, kind: Integers, times: Floats, tasks: Tasks, spec: RunSpec
) -> Floats:
    """The seconds of each whole task on its device, with its data moved there."""
    seconds = times[np.arange(len(tasks)), kind]
    if (home := _home(tasks, spec)) is not None:
        away = (home != NOWHERE) & (home != spec.platform.node_of[device])
        seconds = seconds + np.where(away, _transfer(tasks, spec), 0.0)
    return np.where(device == NOWHERE, np.inf, seconds)


def _home(tasks: Tasks, spec: RunSpec) -> Integers | None:
    """The node of each task's data; None where it makes no difference."""
    return None if len(spec.platform.node_names) == 1 else tasks.home


def _transfer(tasks: Tasks, spec: RunSpec) -> Floats:
    """Seconds to move the data of each task to another node."""
    network = spec.cluster.network
    return tasks.memory_required / network.bandwidth_mb_s + network.latency_s


def _may_split(tasks: Tasks, spec: RunSpec, device: Integers, cpu: Integers) -> Bools | None:
    """Which tasks may be split, and have both devices in one node; None: all."""
    platform = spec.platform
    if len(platform.node_names) == 1:
        return tasks.may_split
    together: Bools = platform.node_of[device] == platform.node_of[cpu]
    return together if tasks.may_split is None else together & tasks.may_split


def _failure_charge(tasks: Tasks, spec: RunSpec, times: Floats) -> Floats:
    """Seconds of each whole task on the slowest type that can run it, at the worst place; 0 where
    no type can."""
    longest = times.copy()
    if spec.physics.memory_policy == "page":
        for column, kind in enumerate(spec.platform.types):
            if kind.accelerator:
                overflow = np.maximum(tasks.memory_required - _room(kind.memory_mb, tasks), 0.0)
                longest[:, column] += overflow / kind.bandwidth_mb_s
    if (home := _home(tasks, spec)) is not None:
        longest += np.where(home != NOWHERE, _transfer(tasks, spec), 0.0)[:, None]
    return np.asarray(np.where(np.isfinite(longest), longest, 0.0).max(axis=1))


def fastest(tasks: Tasks, spec: RunSpec, *, times: Floats | None = None) -> Decisions:
    """The Oracle's answer: the devices and the share with the least real execution time, or with
    the least by another matrix of seconds.

    The time is piecewise linear in the share, so its minimum for a pair of device types lies at an
    end, where the accelerator's memory is just full, or where both parts end together. Those are
    tried beside the grid. The devices of all types that are as fast take turns by task id.
    """
    count, platform = len(tasks), spec.platform
    times = real_seconds(tasks, spec) if times is None else times
    time, share = np.empty((len(platform.pairs), count)), np.empty((len(platform.pairs), count))
    for number, (kind, host, nodes) in enumerate(platform.pairs):
        parts = _parts_of(tasks, spec, times, kind, host, nodes)
        candidates = _candidates(parts, spec, kind, host, count)
        time[number], share[number] = _best_share(parts, candidates, spec)
    pair, turn = _take_turns(time, [len(each) for each in platform.pair_devices], tasks.task_id)
    device, cpu, home = np.full(count, NOWHERE), np.full(count, NOWHERE), _home(tasks, spec)
    for number in range(len(platform.pairs)):
        rows = np.flatnonzero(pair == number)
        device[rows], cpu[rows] = _devices_of_pair(
            platform, number, turn[rows], tasks.task_id[rows], None if home is None else home[rows]
        )
    return Decisions(gpu_fraction=share[pair, np.arange(count)], device=device, cpu=cpu)


def _best_share(parts: _Parts, candidates: list[Floats], spec: RunSpec) -> tuple[Floats, Floats]:
    """The least time and its share; infinite and 0 where all shares fail."""
    best_time, best_share = np.full(len(parts.memory), np.inf), np.zeros(len(parts.memory))
    for candidate in candidates:
        share = parts.allowed(candidate)
        gpu_time, cpu_time, failed = parts.divide(share)
        time = execution_time(gpu_time, cpu_time, spec)
        better = (time < best_time) & ~failed
        best_share = np.where(better, share, best_share)
        best_time = np.where(better, time, best_time)
    return best_time, best_share


def _take_turns(time: Floats, devices: list[int], task_id: Integers) -> tuple[Integers, Integers]:
    """For each task (column) one of the pairs (rows) that need the least time, as often as it has
    devices, and the number of one of these devices."""
    if len(devices) == 1:
        return np.zeros(len(task_id), np.int64), task_id % devices[0]
    tied = time == time.min(axis=0)
    until = np.cumsum(tied * np.array(devices)[:, None], axis=0)
    turn = task_id % until[-1]
    pair = (until > turn).argmax(axis=0)
    before = until[pair, np.arange(len(task_id))] - np.array(devices)[pair]
    return pair, turn - before


def _devices_of_pair(
    platform: Platform, number: int, turn: Integers, task_id: Integers, home: Integers | None
) -> tuple[Integers, Integers]:
    """The accelerator and the CPU of tasks that a pair of types is best for: at home if it can."""
    kind, host, nodes = platform.pairs[number]
    main = platform.pair_devices[number][turn]
    node, cpu_turn = platform.node_of[main], task_id // len(nodes)
    if home is not None:
        at_home = np.isin(home, nodes)
        node, cpu_turn = np.where(at_home, home, node), np.where(at_home, task_id, cpu_turn)
        bound_to = host if kind == NOWHERE else kind
        main = np.where(at_home, platform.pick(bound_to, node, cpu_turn), main)
    nowhere = np.full(len(task_id), NOWHERE)
    if kind == NOWHERE:
        return nowhere, main
    return main, nowhere if host == NOWHERE else platform.pick(host, node, cpu_turn)


def _parts_of(
    tasks: Tasks, spec: RunSpec, times: Floats, kind: int, host: int, nodes: Integers
) -> _Parts:
    """Tasks divided between two device types that `nodes` have, at home if home is one of them."""
    platform = spec.platform
    impossible = np.full(len(tasks), np.inf)
    on_gpu = impossible if kind == NOWHERE else times[:, kind]
    on_cpu = impossible if host == NOWHERE else times[:, host]
    if (home := _home(tasks, spec)) is not None:
        away = (home != NOWHERE) & ~np.isin(home, nodes)
        moving = np.where(away, _transfer(tasks, spec), 0.0)
        on_gpu, on_cpu = on_gpu + moving, on_cpu + moving
    return _Parts(
        on_gpu,
        on_cpu,
        tasks.memory_required,
        _room(float(platform.memory_mb[kind]), tasks),
        float(platform.bandwidth_mb_s[kind]),
        tasks.may_split,
        spec.physics.memory_policy,
    )


def _candidates(parts: _Parts, spec: RunSpec, kind: int, host: int, count: int) -> list[Floats]:
    """The shares to try: all or none without a second device, or if no task may be split."""
    if NOWHERE in (kind, host) or (parts.may_split is not None and not parts.may_split.any()):
        return [np.zeros(count), np.ones(count)]
    step = spec.oracle.step
    grid = [np.full(count, min(k * step, 1.0)) for k in range(round(1 / step) + 1)]
    return [*grid, np.ones(count), *parts.exact_shares()]
