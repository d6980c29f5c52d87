"""The instances that the adversary searches: small runs, as numbers within bounds.

A point has a number for each gene; `spec_of` makes it a run. The comment beside a gene explains it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from services.lab.experiments.arrival_load import at_load
from services.lab.experiments.declaration import merged
from shared.domain.spec import RunSpec
from shared.errors import SpecError

Point = dict[str, float]


@dataclass(frozen=True, slots=True)
class Gene:
    low: float
    high: float
    simple: float  # the value of a shrunk instance, if possible
    whole: bool = False
    logarithmic: bool = False

    def random_value(self, draw: random.Random) -> float:
        if self.logarithmic and self.low > 0:
            value = math.exp(draw.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = draw.uniform(self.low, self.high)
        return self._allowed(value)

    def step_from(self, value: float, draw: random.Random) -> float:
        """A step of a fifth of the range, or anywhere now and then."""
        if draw.random() < 0.1:
            return self.random_value(draw)
        if self.logarithmic and self.low > 0:
            return self._allowed(value * (self.high / self.low) ** (0.2 * draw.gauss(0, 1)))
        step = max(0.2 * (self.high - self.low), float(self.whole))
        return self._allowed(value + step * draw.gauss(0, 1))

    def _allowed(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        return float(round(value)) if self.whole else float(f"{value:.4g}")


WORKLOAD = {
    "seed": Gene(1, 1_000_000, 1, whole=True),
    "tasks": Gene(4, 120, 4, whole=True, logarithmic=True),
    "load": Gene(0.1, 1.2, 0.5),  # offered to the cluster
    "burst_tasks": Gene(1, 40, 1, whole=True),  # arrive nearly at once; 1: no bursts
    "size_median": Gene(100, 2000, 500, logarithmic=True),
    "size_sigma": Gene(0, 1.5, 0),
    "gpu_bound": Gene(0, 1, 0.5),  # share of tasks with an intensity around 0.8, others 0.2
    "memory_median": Gene(10, 9000, 10, logarithmic=True),  # MB
    "dependent": Gene(0, 0.8, 0),  # share of tasks that wait for others
    "noise": Gene(0, 0.5, 0),  # relative deviation of real from expected times
}
PLATFORM = {
    "cpus": Gene(1, 4, 1, whole=True),
    "gpus": Gene(1, 4, 1, whole=True),
    "gpu_speed": Gene(0.25, 4, 1, logarithmic=True),
    "bandwidth": Gene(1000, 32_000, 16_000, logarithmic=True),  # MB/s to a GPU
    "slow_gpus": Gene(0, 3, 0, whole=True),  # a second type, of a third of the speed
}
BURST_FACTOR = 100.0


class Space:
    """The genes, their bounds, and what all instances share."""

    def __init__(
        self, bounds: Mapping[str, Any] | None = None, platform: dict[str, Any] | None = None
    ) -> None:
        known = WORKLOAD if platform is not None else {**WORKLOAD, **PLATFORM}
        self.genes = {**known, **{k: _bounded(k, known, v) for k, v in (bounds or {}).items()}}
        self._shared = merged({"pace": "max", "learning": {"sync": "lockstep"}}, platform or {})
        self._own_platform = platform is None

    def random_point(self, draw: random.Random) -> Point:
        return {name: gene.random_value(draw) for name, gene in self.genes.items()}

    def neighbour(self, point: Point, draw: random.Random) -> Point:
        """A point with one to three genes moved."""
        chosen = draw.sample(list(self.genes), draw.randint(1, 3))
        return point | {name: self.genes[name].step_from(point[name], draw) for name in chosen}

    def smaller(self, point: Point) -> Iterator[Point]:
        """Simpler points, those with the largest changes first."""
        for name, gene in self.genes.items():
            value, simple = point[name], min(max(gene.simple, gene.low), gene.high)
            if value == simple or name == "seed":
                continue
            yield point | {name: simple}
            if gene.whole:
                middle = float((value + simple) // 2)
                step = value - 1 if value > simple else value + 1
                yield from (point | {name: each} for each in {middle, step} - {value, simple})

    def spec_of(self, point: Point, schedulers: tuple[str, ...] = ()) -> RunSpec:
        workload: dict[str, Any] = {
            "mix": {
                "size": {
                    "kind": "lognormal",
                    "median": point["size_median"],
                    "sigma": point["size_sigma"],
                },
                "intensity": {"kind": "bimodal", "high_share": point["gpu_bound"]},
                "memory": {
                    "values": {"kind": "lognormal", "median": point["memory_median"], "sigma": 0.5}
                },
            },
            "dependencies": {"probability": point["dependent"]},
        }
        if point["burst_tasks"] > 1:
            burst = {"burst_tasks": int(point["burst_tasks"]), "factor": BURST_FACTOR}
            workload["arrivals"] = {"kind": "bursty", **burst}
        own = {
            "seed": int(point["seed"]),
            "tasks": int(point["tasks"]),
            "schedulers": list(schedulers),
            "physics": {"noise": point["noise"]},
            "workload": workload,
        }
        if self._own_platform:
            own["cluster"] = {"devices": _devices(point)}
        spec = RunSpec.parse(merged(self._shared, own))
        loaded = at_load(spec.without_noise, point["load"])
        return spec.model_copy(update={"workload": loaded.workload})


def _devices(point: Point) -> list[dict[str, Any]]:
    gpu = {"bandwidth_mb_s": point["bandwidth"]}
    devices: list[dict[str, Any]] = [
        {"type": "cpu", "count": int(point["cpus"])},
        {"type": "gpu", "count": int(point["gpus"]), "speed": point["gpu_speed"], **gpu},
    ]
    if point["slow_gpus"]:
        slow = float(f"{point['gpu_speed'] / 3:.4g}")
        devices.append({"type": "slow_gpu", "count": int(point["slow_gpus"]), "speed": slow, **gpu})
    return devices


def _bounded(name: str, known: Mapping[str, Gene], bounds: Any) -> Gene:
    """`[low, high]`, or a number that stays."""
    if name not in known:
        raise SpecError([f"bounds: no {name!r}; there are {', '.join(known)}"])
    low, high = bounds if isinstance(bounds, list) and len(bounds) == 2 else (bounds, bounds)
    try:
        low, high = float(low), float(high)
    except (TypeError, ValueError):
        raise SpecError([f"bounds: {name}: give a number, or [low, high]"]) from None
    if not low <= high:
        raise SpecError([f"bounds: {name}: {low:g} is above {high:g}"])
    gene = known[name]
    return Gene(low, high, gene.simple, gene.whole, gene.logarithmic)
