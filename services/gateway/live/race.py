"""A run's race as the bus tells it: standings, recent results, utilisation. No I/O.

Every batch of results carries its scheduler's exact standing, so a race is never added up here:
the newest batch says it all, and one that was missed is missed for half a second at most.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from services.gateway.ranking import Averages, Place, Weights, rank
from shared import batches
from shared.spec import RunSpec
from shared.standing import Standing, standing_of

# Simulated seconds that utilisation looks back.
WINDOW_SECONDS = 60.0
# Samples of a scheduler's busy seconds are at least this far apart in simulated time, so that a
# window holds a bounded number of them.
SAMPLE_SECONDS = 1.0
KEPT_SAMPLES = 128
# Last results kept of each scheduler, by batch: how far apart schedulers may be and still show
# their newest common task without asking the store.
KEPT_LAPS = 256

DIGITS = 6  # significant ones; the figures are for people, and a message must stay small

SHOWN = ("time", "energy", "cost", "gpu_fraction", "gpu", "model_version", "explored", "status")


@dataclass(frozen=True, slots=True)
class Lap:
    """One batch of results: the standing after it, and its last task's result."""

    scheduler: str
    batch: int
    standing: Standing
    last: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    clock: float
    busy: tuple[float, ...]  # CPUs, then GPUs


@dataclass(slots=True)
class Competitor:
    standing: Standing
    batch: int
    model_version: int = 0
    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=KEPT_SAMPLES))
    laps: OrderedDict[int, dict[str, Any]] = field(default_factory=OrderedDict)


def read_lap(body: bytes, subject: str) -> Lap:
    """A message of results; Unreadable when it is none."""
    batch = batches.peek(body, subject)
    envelope, rows = batch.envelope, batch.rows
    last = _last_row(rows) if rows.num_rows else None
    return Lap(envelope.scheduler, envelope.batch, standing_of(envelope), last)


def _last_row(rows: pa.RecordBatch) -> dict[str, Any]:
    names = ("task_id", "size", "compute_intensity", "memory_required", *SHOWN)
    end = rows.num_rows - 1
    return {name: rows.column(name)[end].as_py() for name in names}


class Race:
    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec
        self._competitors: dict[str, Competitor] = {}
        self._common: tuple[dict[str, Any], dict[str, Any]] | None = None
        self.devices = [f"cpu_{n}" for n in range(spec.cluster.cpus)]
        self.devices += [f"gpu_{n}" for n in range(spec.cluster.gpus)]

    def take(self, lap: Lap) -> bool:
        """Move a scheduler forward; says whether this was news."""
        if lap.scheduler not in self._spec.schedulers:
            return False
        known = self._competitors.get(lap.scheduler)
        if known is None:
            known = self._competitors[lap.scheduler] = Competitor(lap.standing, lap.batch)
        elif lap.batch <= known.batch:
            return False
        known.standing, known.batch = lap.standing, lap.batch
        self._sample(known, _sample_of(lap.standing))
        if lap.last is not None:
            known.model_version = lap.last["model_version"]
            known.laps[lap.batch] = lap.last
            if len(known.laps) > KEPT_LAPS:
                known.laps.popitem(last=False)
        return True

    def remember(self, scheduler: str, sample: Sample) -> None:
        """A sample from before this race was watched."""
        self._competitors[scheduler].samples.appendleft(sample)

    @staticmethod
    def _sample(competitor: Competitor, sample: Sample) -> None:
        samples = competitor.samples
        if not samples or sample.clock >= samples[-1].clock + SAMPLE_SECONDS:
            samples.append(sample)
            oldest_needed = sample.clock - WINDOW_SECONDS
            while len(samples) > 1 and samples[1].clock <= oldest_needed:
                samples.popleft()

    @property
    def names(self) -> list[str]:
        """The schedulers that have results, in the order of the spec."""
        return [name for name in self._spec.schedulers if name in self._competitors]

    @property
    def missing(self) -> list[str]:
        return [name for name in self._spec.schedulers if name not in self._competitors]

    def batch_of(self, scheduler: str) -> int:
        return self._competitors[scheduler].batch

    def standing_of(self, scheduler: str) -> Standing:
        return self._competitors[scheduler].standing

    @property
    def tasks_processed(self) -> int:
        """By every scheduler."""
        if not self._competitors or self.missing:
            return 0
        return min(competitor.standing.tasks for competitor in self._competitors.values())

    @property
    def most_tasks(self) -> int:
        """By the scheduler that is furthest."""
        return max((seen.standing.tasks for seen in self._competitors.values()), default=0)

    def places(self, weights: Weights) -> list[Place]:
        """Of the schedulers with results."""
        return rank(
            {
                name: averages(competitor.standing)
                for name, competitor in self._competitors.items()
                if competitor.standing.tasks
            },
            weights,
        )

    def comparison(self, weights: Weights) -> list[dict[str, Any]]:
        """A row per scheduler, best first."""
        oracle = self._competitors.get("oracle")
        return [
            self._row(self._competitors[place.name], place, oracle.standing if oracle else None)
            for place in self.places(weights)
        ]

    def _row(self, seen: Competitor, place: Place, oracle: Standing | None) -> dict[str, Any]:
        standing = seen.standing
        tasks = standing.tasks
        return {
            "name": place.name,
            "tasks": tasks,
            "failed": standing.failed,
            "avg_time": shown(standing.total_time / tasks),
            "avg_energy": shown(standing.total_energy / tasks),
            "avg_cost": shown(standing.total_cost / tasks),
            "avg_wait": shown(standing.total_wait / tasks),
            "avg_turnaround": shown(standing.total_turnaround / tasks),
            "total_time": shown(standing.total_time),
            "total_energy": shown(standing.total_energy),
            "total_cost": shown(standing.total_cost),
            "makespan": shown(standing.makespan),
            "gpu_share": shown(standing.gpu_tasks / tasks),
            "vs_oracle": shown(standing.over(oracle)),
            "model_version": seen.model_version,
            "score": shown(place.score),
            "rank": place.rank,
            "pareto": place.pareto,
        }

    def utilization(self) -> dict[str, dict[str, float]]:
        """By scheduler and device: the share of the last simulated minute that it was given
        work for."""
        found = {}
        for name in self.names:
            shares = _shares(self._competitors[name])
            found[name] = dict(zip(self.devices, map(shown_share, shares), strict=False))
        return found

    def common_batch(self) -> int | None:
        """The newest batch that every scheduler has results for."""
        if not self._competitors or self.missing:
            return None
        return min(competitor.batch for competitor in self._competitors.values())

    def common_task(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The newest task that every scheduler has a result for, and those results.

        None while there is no such task, or none whose results are all at hand; then the one that
        was last put in by `show` or found here stays.
        """
        batch = self.common_batch()
        if batch is None:
            return None
        rows = {name: self._competitors[name].laps.get(batch) for name in self.names}
        present = {name: row for name, row in rows.items() if row is not None}
        if len(present) == len(rows):
            self.show(present)
        return self._common

    def wanted_task(self) -> int | None:
        """The id of the newest common task when some of its results have to be looked up."""
        batch = self.common_batch()
        if batch is None or all(batch in self._competitors[name].laps for name in self.names):
            return None
        wanted = min(competitor.standing.tasks for competitor in self._competitors.values()) - 1
        return None if self._common and self._common[0]["id"] >= wanted else wanted

    def show(self, rows: dict[str, dict[str, Any]]) -> None:
        """Results of one task by scheduler, as the newest that all have."""
        task = next(iter(rows.values()))
        self._common = (
            {
                "id": task["task_id"],
                "size": shown(task["size"]),
                "intensity": shown(task["compute_intensity"]),
                "memory": shown(task["memory_required"]),
            },
            {name: {key: shown(row[key]) for key in SHOWN} for name, row in rows.items()},
        )


def averages(standing: Standing) -> Averages:
    tasks = standing.tasks or 1
    return Averages(
        standing.total_time / tasks, standing.total_energy / tasks, standing.total_cost / tasks
    )


def mean(values: Iterable[float]) -> float:
    given = list(values)
    return sum(given) / len(given) if given else 0.0


def _sample_of(standing: Standing) -> Sample:
    return Sample(standing.clock, (*standing.cpu_busy, *standing.gpu_busy))


def _shares(competitor: Competitor) -> list[float]:
    """Against the newest sample that is a window old; a younger race is measured from its start."""
    now = _sample_of(competitor.standing)
    then = Sample(0.0, (0.0,) * len(now.busy))
    for sample in competitor.samples:
        if sample.clock > now.clock - WINDOW_SECONDS or len(sample.busy) != len(now.busy):
            break
        then = sample
    passed = now.clock - then.clock
    if passed <= 0:
        return [0.0] * len(now.busy)
    spent = zip(now.busy, then.busy, strict=True)
    return [min(max((end - start) / passed, 0.0), 1.0) for end, start in spent]


def shown(value: Any) -> Any:
    """A figure for people: a few digits; what is no number is none."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def shown_share(value: float) -> float:
    return round(value, 4)
