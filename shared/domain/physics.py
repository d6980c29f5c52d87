"""The time, energy and cost of a decision: pure, vectorised functions.

With size N, intensity I, memory M and GPU share f:

    base time  T = (N / 1000) ** 1.5 / (I + 0.5)        speed-up  S = 1 + 3 I
    transfer   X = M / 16000                            GPU part  g = f (T / S + X)
    CPU part   c = (1 - f) T                            energy    50 g + 30 c

The execution time is g + c when the parts run one after the other, max(g, c) when they overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.domain.portable_math import power
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True, slots=True)
class Price:
    """One row per decision. A failed task ran nowhere: its times, energy and costs are 0."""

    gpu_time: Floats
    cpu_time: Floats
    time: Floats
    energy: Floats
    cost: Floats
    cost_cloud: Floats
    cost_electricity: Floats
    failed: Bools


def cpu_seconds(tasks: Tasks, spec: RunSpec) -> Floats:
    """The whole task on the CPU."""
    physics = spec.physics
    work = power(tasks.size / physics.size_unit, physics.size_exponent)
    return np.asarray(work / (tasks.compute_intensity + physics.intensity_offset))


def gpu_seconds(tasks: Tasks, spec: RunSpec) -> Floats:
    """The whole task on a GPU, transfer included, as if it fitted its memory."""
    physics = spec.physics
    speedup = 1.0 + physics.speedup_slope * tasks.compute_intensity
    transfer = tasks.memory_required / physics.bandwidth_mb_s
    return np.asarray(cpu_seconds(tasks, spec) / speedup + transfer)


def price(tasks: Tasks, share: Floats, spec: RunSpec) -> Price:
    """Time, energy and cost of running `share` of each task on a GPU."""
    physics = spec.physics
    on_cpu, on_gpu = cpu_seconds(tasks, spec), gpu_seconds(tasks, spec)
    overflow = np.maximum(share * tasks.memory_required - spec.cluster.gpu_memory_mb, 0.0)
    too_big = overflow > 0
    failed = np.zeros(len(tasks), dtype=np.bool_)
    if physics.memory_policy == "cpu":
        share = np.where(too_big, 0.0, share)
    gpu_time = share * on_gpu
    cpu_time = (1.0 - share) * on_cpu
    if physics.memory_policy == "page":
        gpu_time = gpu_time + overflow / physics.bandwidth_mb_s
    elif physics.memory_policy == "fail":
        failed = too_big
        gpu_time = np.where(failed, 0.0, gpu_time)
        cpu_time = np.where(failed, 0.0, cpu_time)
    time = execution_time(gpu_time, cpu_time, spec)
    energy = physics.gpu_watts * gpu_time + physics.cpu_watts * cpu_time
    cloud = physics.gpu_dollars_per_s * gpu_time + physics.cpu_dollars_per_s * cpu_time
    electricity = energy / JOULES_PER_KWH * physics.dollars_per_kwh
    return Price(
        gpu_time=gpu_time,
        cpu_time=cpu_time,
        time=time,
        energy=energy,
        cost=cloud if physics.cost_model == "cloud" else electricity,
        cost_cloud=cloud,
        cost_electricity=electricity,
        failed=failed,
    )


def execution_time(gpu_time: Floats, cpu_time: Floats, spec: RunSpec) -> Floats:
    if spec.physics.split == "serial":
        return gpu_time + cpu_time
    return np.maximum(gpu_time, cpu_time)


def fastest_share(tasks: Tasks, spec: RunSpec) -> Floats:
    """The Oracle's answer: the share with the least execution time that does not fail.

    The time is piecewise linear in the share, so its minimum lies at an end, where the GPU's
    memory is just full, or where both parts end together. Those are tried beside the grid.
    """
    steps = round(1 / spec.oracle.step)
    candidates = [np.full(len(tasks), min(k * spec.oracle.step, 1.0)) for k in range(steps + 1)]
    candidates += [np.ones(len(tasks)), *_exact_candidates(tasks, spec)]
    best_share = np.zeros(len(tasks))
    best_time = np.full(len(tasks), np.inf)
    for share in candidates:
        priced = price(tasks, share, spec)
        better = (priced.time < best_time) & ~priced.failed
        best_share = np.where(better, share, best_share)
        best_time = np.where(better, priced.time, best_time)
    return best_share


def _exact_candidates(tasks: Tasks, spec: RunSpec) -> list[Floats]:
    on_cpu, on_gpu = cpu_seconds(tasks, spec), gpu_seconds(tasks, spec)
    memory, capacity = tasks.memory_required, spec.cluster.gpu_memory_mb
    bandwidth = spec.physics.bandwidth_mb_s
    room = capacity / np.maximum(memory, capacity)
    # Rounding may push share * memory just over the capacity; one step down always fits.
    fits = np.where(room * memory > capacity, np.nextafter(room, 0.0), room)
    level = on_cpu / (on_cpu + on_gpu)
    paged = (on_cpu + capacity / bandwidth) / (on_cpu + on_gpu + memory / bandwidth)
    return [fits, level, np.minimum(paged, 1.0)]
