"""The schedulers of a run side by side: standings, latest results, utilisation. No I/O.

Every batch of results has its scheduler's exact standing, so nothing is added up here: only the
newest batch counts, and a missed batch is corrected by the next one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from services.gateway.analysis.ranking import Averages, Place, Weights, rank
from services.gateway.live.schemas import LATEST, ComparisonRow, LatestResult, LatestTask
from services.gateway.runs.schemas import per_task
from services.gateway.tasks.device_names import device_names
from shared.domain.schedulers import ORACLE
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats
from shared.messages import batches
from shared.messages.standing import Standing, standing_of
from shared.runtime.bounded_dict import BoundedDict

# Utilisation is the mean over this many simulated seconds.
WINDOW_SECONDS = 60.0
# Samples of a scheduler's busy seconds are at least this far apart in simulated time, so that a
# window holds a bounded number of them.
SAMPLE_SECONDS = 1.0
KEPT_SAMPLES = 128
# Batches kept of each scheduler: schedulers that are further apart need the store to show their
# newest common task.
KEPT_BATCHES = 256

Row = dict[str, Any]
# Columns of a batch's last row: of the task, of its result, and what names its devices.
LAST_ROW = ("task_id", "size", "compute_intensity", "memory_required", *LATEST)
LAST_ROW += ("gpu_time", "cpu_time")


@dataclass(frozen=True, slots=True)
class ResultBatch:
    """One batch of results: the standing after it, and its last row."""

    scheduler: str
    batch: int
    standing: Standing
    last: Row | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    clock: float
    busy: Floats  # by meter


@dataclass(slots=True)
class Competitor:
    standing: Standing
    batch: int
    model_version: int = 0
    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=KEPT_SAMPLES))
    # By batch:
    standings: BoundedDict[int, Standing] = field(default_factory=lambda: BoundedDict(KEPT_BATCHES))
    last_rows: BoundedDict[int, Row] = field(default_factory=lambda: BoundedDict(KEPT_BATCHES))


def read_results(body: bytes, subject: str) -> ResultBatch:
    """A message of results; raises Unreadable if it is none."""
    batch = batches.peek(body, subject)
    envelope, rows = batch.envelope, batch.rows
    last = {name: batches.value(rows, name, -1) for name in LAST_ROW} if rows.num_rows else None
    return ResultBatch(envelope.scheduler, envelope.batch, standing_of(envelope), last)


class Race:
    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec
        self.suspended: frozenset[str] = frozenset()  # not compared
        self._taken: dict[str, Competitor] = {}
        self._common: tuple[LatestTask, dict[str, LatestResult]] | None = None
        self.meters = spec.platform.meters
        self._devices = np.array([meter.devices for meter in self.meters])

    def take(self, batch: ResultBatch) -> bool:
        """Advance a scheduler; False if this batch is not new."""
        if batch.scheduler not in self._spec.schedulers:
            return False
        competitor = self._taken.get(batch.scheduler)
        if competitor is None:
            competitor = Competitor(batch.standing, batch.batch)
            self._taken[batch.scheduler] = competitor
        elif batch.batch <= competitor.batch:
            return False
        competitor.standing, competitor.batch = batch.standing, batch.batch
        competitor.standings[batch.batch] = batch.standing
        _add_sample(competitor.samples, _sample_of(batch.standing))
        if batch.last is not None:
            competitor.model_version = batch.last["model_version"]
            competitor.last_rows[batch.batch] = batch.last
        return True

    def add_past(self, scheduler: str, sample: Sample) -> None:
        """Add a sample from before this feed was opened."""
        self._taken[scheduler].samples.appendleft(sample)

    def _used(self, competitor: Competitor) -> dict[str, float]:
        """The share of its time that each meter's devices worked."""
        passed, worked = _worked(competitor)
        used = np.zeros(len(self.meters))
        if passed > 0 and len(worked) == len(used):
            used = np.clip(worked / (passed * self._devices), 0.0, 1.0).round(4)
        return dict(zip((meter.name for meter in self.meters), used.tolist(), strict=True))

    @property
    def competitors(self) -> dict[str, Competitor]:
        """The schedulers that have results and are not suspended."""
        return {name: each for name, each in self._taken.items() if name not in self.suspended}

    @property
    def names(self) -> list[str]:
        """The schedulers that have results, in the order of the spec."""
        competitors = self.competitors
        return [name for name in self._spec.schedulers if name in competitors]

    @property
    def missing(self) -> list[str]:
        known = self.competitors.keys() | self.suspended
        return [name for name in self._spec.schedulers if name not in known]

    @property
    def tasks_processed(self) -> int:
        """The tasks that every scheduler has results for."""
        if not self.competitors or self.missing:
            return 0
        return min(competitor.standing.tasks for competitor in self.competitors.values())

    @property
    def most_tasks(self) -> int:
        """The tasks that the fastest scheduler has results for."""
        return max((each.standing.tasks for each in self._taken.values()), default=0)

    def comparison(self, weights: Weights) -> list[ComparisonRow]:
        """A row per scheduler that has results, best first."""
        standings = self.common_standings()
        averages = {name: Averages.of(each) for name, each in standings.items() if each.tasks}
        return [
            _row(self.competitors[place.name], standings, place)
            for place in rank(averages, weights)
        ]

    def common_standings(self) -> dict[str, Standing]:
        """Standings after the newest batch for which all competitors have results: ranks need
        averages over the same tasks. If that batch of a scheduler is not in memory, such as when
        the feed was just opened, its newest standing counts."""
        competitors = self.competitors
        batch = min((each.batch for each in competitors.values()), default=0)
        return {
            name: each.standings.get(batch, each.standing) for name, each in competitors.items()
        }

    def utilization(self) -> dict[str, dict[str, float]]:
        """By scheduler and meter: busy seconds over the last WINDOW_SECONDS of simulated time."""
        return {name: self._used(self.competitors[name]) for name in self.names}

    def common_batch(self) -> int | None:
        """The newest batch that every scheduler has results for."""
        if not self.competitors or self.missing:
            return None
        return min(competitor.batch for competitor in self.competitors.values())

    def common_task(self) -> tuple[LatestTask, dict[str, LatestResult]] | None:
        """The newest task that every scheduler has a result for, and those results.

        If some of its results are not in memory, the task that was shown before; None without one.
        """
        batch = self.common_batch()
        if batch is None:
            return None
        rows = {name: self.competitors[name].last_rows.get(batch) for name in self.names}
        if all(rows.values()):
            self.show({name: row for name, row in rows.items() if row})
        return self._common

    def task_to_load(self) -> int | None:
        """The newest common task's id when some of its results have to come from the store."""
        batch = self.common_batch()
        if batch is None or all(batch in self.competitors[name].last_rows for name in self.names):
            return None
        task = self.tasks_processed - 1
        return None if self._common and self._common[0].id >= task else task

    def show(self, rows: dict[str, Row]) -> None:
        """Make these results of one task, by scheduler, the newest that all have."""
        task = next(iter(rows.values()))
        for name, row in rows.items():
            # A standing from the store does not say which model decided.
            if name in self._taken and not self._taken[name].model_version:
                self._taken[name].model_version = row["model_version"]
        self._common = (
            LatestTask(
                id=task["task_id"],
                size=task["size"],
                intensity=task["compute_intensity"],
                memory=task["memory_required"],
            ),
            {
                name: LatestResult.model_validate({**row, **device_names(row, self._spec.platform)})
                for name, row in rows.items()
            },
        )


def _row(competitor: Competitor, standings: dict[str, Standing], place: Place) -> ComparisonRow:
    standing = standings[place.name]
    return ComparisonRow(
        **vars(standing),
        **per_task(standing),
        vs_oracle=standing.time_over(standings.get(ORACLE)),
        model_version=competitor.model_version,
        name=place.name,
        score=place.score,
        rank=place.rank,
        pareto=place.pareto,
    )


def _sample_of(standing: Standing) -> Sample:
    return Sample(standing.clock, np.array(standing.busy))


def _add_sample(samples: deque[Sample], sample: Sample) -> None:
    if not samples or sample.clock >= samples[-1].clock + SAMPLE_SECONDS:
        samples.append(sample)
        while len(samples) > 1 and samples[1].clock <= sample.clock - WINDOW_SECONDS:
            samples.popleft()


def _worked(competitor: Competitor) -> tuple[float, Floats]:
    """The seconds that have passed, and the busy seconds of each meter, since the newest sample
    that is at least a window old; in a younger run, since its start."""
    now = _sample_of(competitor.standing)
    then = Sample(0.0, np.zeros(len(now.busy)))
    for sample in competitor.samples:
        if sample.clock > now.clock - WINDOW_SECONDS or len(sample.busy) != len(now.busy):
            break
        then = sample
    return now.clock - then.clock, now.busy - then.busy
