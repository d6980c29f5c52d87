"""The synthetic task stream: task i of a run is a function of (spec, seed, i) alone.

Random numbers come from a counter-based generator, one counter range per block of tasks, so
any stretch of the stream can be made without the ones before it, by any process, in batches of
any size. Only the arrival clock runs on from task to task; it travels in the cursor.

Uniform numbers are all that is asked of numpy: how it draws others may change with its releases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import Generator, Philox

from shared.elementary import exp, log, normal_quantile, power
from shared.presets import PRESETS
from shared.spec import Bimodal, LogNormal, Mix, Pareto, RunSpec, Uniform
from shared.tasks import Floats, Integers, Tasks

BLOCK = 4096  # tasks per counter range; part of what a seed means, so it never changes


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a run's stream of tasks stands."""

    generated: int = 0  # tasks made by the generator so far
    next_task: int = 0  # next task id; ahead of `generated` by the tasks people submitted
    clock: float = 0.0  # arrival time of the newest task
    ended: bool = False  # nothing more will be submitted


def generate(spec: RunSpec, cursor: Cursor, count: int) -> tuple[Tasks, Cursor]:
    """The next `count` tasks after `cursor`, and the cursor after them."""
    draws = _stretch(spec.seed, cursor.generated, count)
    size, intensity, memory = _mixed(spec, draws, cursor.generated)
    # A running sum that starts from the clock adds in the same order whatever the batch size.
    gaps = draws.gap / spec.workload.arrival_rate
    arrival = np.cumsum(np.concatenate(([cursor.clock], gaps)))[1:]
    task_id = np.arange(cursor.next_task, cursor.next_task + count, dtype=np.int64)
    tasks = Tasks(task_id, size, intensity, memory, arrival, _parents(spec, draws, task_id))
    after = Cursor(cursor.generated + count, cursor.next_task + count, float(arrival[-1]))
    return tasks, after


@dataclass(frozen=True, slots=True)
class _Draws:
    """The raw random numbers of a stretch of tasks, the same for every mix."""

    gap: Floats  # exponential with mean 1
    size_u: Floats
    size_z: Floats
    mode_u: Floats
    intensity_u: Floats
    intensity_z: Floats
    memory_u: Floats
    memory_z: Floats
    parent_u: Floats
    parents_u: Floats
    lags_u: Floats  # one column per possible parent

    def slice(self, start: int, stop: int) -> _Draws:
        return _Draws(*(getattr(self, name)[start:stop] for name in self.__slots__))


@lru_cache(maxsize=4)
def _block(seed: int, number: int) -> _Draws:
    random = Generator(Philox(key=seed, counter=[0, 0, 0, number]))

    def above_zero() -> Floats:
        return np.maximum(random.random(BLOCK), 2.0**-54)

    return _Draws(
        gap=-log(above_zero()),
        size_u=random.random(BLOCK),
        size_z=normal_quantile(above_zero()),
        mode_u=random.random(BLOCK),
        intensity_u=random.random(BLOCK),
        intensity_z=normal_quantile(above_zero()),
        memory_u=random.random(BLOCK),
        memory_z=normal_quantile(above_zero()),
        parent_u=random.random(BLOCK),
        parents_u=random.random(BLOCK),
        lags_u=random.random((BLOCK, 16)),
    )


def _stretch(seed: int, start: int, count: int) -> _Draws:
    pieces = []
    position, end = start, start + count
    while position < end:
        number, offset = divmod(position, BLOCK)
        stop = min(BLOCK, offset + end - position)
        pieces.append(_block(seed, number).slice(offset, stop))
        position += stop - offset
    if len(pieces) == 1:
        return pieces[0]
    return _Draws(
        *(np.concatenate([getattr(piece, name) for piece in pieces]) for name in _Draws.__slots__)
    )


def _mixed(spec: RunSpec, draws: _Draws, start: int) -> tuple[Floats, Floats, Floats]:
    """Size, intensity and memory, each task from the mix that the drift schedule says."""
    size, intensity, memory = _apply(spec.workload.mix, draws)
    index = np.arange(start, start + len(draws.gap))
    for step in spec.workload.drift:
        if step.after > index[-1]:
            break
        drifted = _apply(preset_mix(step.preset), draws)
        late = index >= step.after
        size, intensity, memory = (
            np.where(late, new, old)
            for new, old in zip(drifted, (size, intensity, memory), strict=True)
        )
    return size, intensity, memory


@lru_cache
def preset_mix(name: str) -> Mix:
    return Mix.model_validate(PRESETS[name])


def _apply(mix: Mix, draws: _Draws) -> tuple[Floats, Floats, Floats]:
    size = _sample(mix.size, draws.size_u, draws.size_z)
    if isinstance(mix.intensity, Bimodal):
        bell = mix.intensity
        centre = np.where(draws.mode_u < bell.high_share, bell.high, bell.low)
        intensity = np.clip(centre + bell.spread * draws.intensity_z, 0.0, 1.0)
    else:
        intensity = _sample(mix.intensity, draws.intensity_u, draws.intensity_z)
    tie = power(size / mix.memory.size_reference, mix.memory.size_exponent)
    memory = _sample(mix.memory.values, draws.memory_u, draws.memory_z) * tie
    if not isinstance(mix.memory.values, Uniform):
        memory = np.minimum(memory, mix.memory.values.high)
    return size, intensity, memory


def _sample(distribution: LogNormal | Pareto | Uniform, u: Floats, z: Floats) -> Floats:
    match distribution:
        case LogNormal(median=median, sigma=sigma, high=high):
            return np.minimum(median * exp(sigma * z), high)
        case Pareto(low=low, alpha=alpha, high=high):
            return np.minimum(low * power(1.0 - u, -1.0 / alpha), high)
        case Uniform(low=low, high=high):
            return low + (high - low) * u


def _parents(spec: RunSpec, draws: _Draws, task_id: Integers) -> list[list[int]]:
    """For each task the ids it waits for, sorted, without repeats; [] when nothing waits."""
    rule = spec.workload.dependencies
    if rule.probability == 0:
        return []
    waits = draws.parent_u < rule.probability
    how_many = 1 + np.floor(draws.parents_u * rule.max_parents).astype(np.int64)
    lags = 1 + np.floor(draws.lags_u[:, : rule.max_parents] * rule.window).astype(np.int64)
    ids = task_id[:, None] - lags
    return [
        sorted({int(parent) for parent in row[:n] if parent >= 0}) if waiting else []
        for waiting, n, row in zip(waits, how_many, ids, strict=True)
    ]
