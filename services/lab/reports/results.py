"""The numbers of a report: every figure of every scheduler with its interval, every test.

The tables, the summary and report.json all show these.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

from services.lab.reports.claims import Verdict, judge_claims
from services.lab.reports.reference import ReferenceRow, compare_with_reference
from services.lab.reports.statistics import (
    Estimate,
    PairedTest,
    corrected,
    estimate,
    paired_test,
    ratio,
)
from services.lab.reports.study import Study
from shared.domain.schedulers import ORACLE


@dataclass(frozen=True)
class Measure:
    """A figure of a scheduler: a column of the outcomes, or derived from some."""

    name: str
    unit: str = "s"
    ranked: bool = False  # all pairs of schedulers are tested by it
    swept: bool = False  # tested from one end of a sweep to the other
    derived: bool = False
    is_ratio: bool = False  # a geometric mean over seeds

    @property
    def header(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name


MEASURES = {
    "total_time": Measure("Total time", ranked=True, swept=True),
    "avg_time": Measure("Time per task"),
    "avg_wait": Measure("Mean wait"),
    "avg_turnaround": Measure("Mean turnaround", ranked=True, swept=True),
    "p95_turnaround": Measure("p95 turnaround", ranked=True),
    "p99_turnaround": Measure("p99 turnaround"),
    "avg_slowdown": Measure("Slowdown", ""),
    "makespan": Measure("Makespan", ranked=True),
    "arrival_bound": Measure("Arrival bound"),
    "total_energy": Measure("Energy", "J", ranked=True, swept=True),
    "energy_with_idle": Measure("With idle power", "J"),
    "total_cost": Measure("Cost", "$", ranked=True, swept=True),
    "gpu_share": Measure("Share on accelerators", ""),
    "over_oracle": Measure("× Oracle", "", derived=True, is_ratio=True),  # total time
    "regret": Measure("Regret", derived=True),  # seconds of execution more than the Oracle
    "speedup": Measure("Speed-up", "", derived=True, is_ratio=True),  # over the baseline
    "over_bound": Measure("× bound", "", derived=True, is_ratio=True),  # makespan
}
RANKED = [column for column, measure in MEASURES.items() if measure.ranked]
SWEPT = [column for column, measure in MEASURES.items() if measure.swept]


@dataclass(frozen=True)
class SchedulerResult:
    """One scheduler in one variant, over all seeds."""

    figures: dict[str, Estimate]  # of MEASURES
    tasks: int  # judged, over all seeds
    failed: int
    recovered_after: list[int | None]  # tasks, by seed

    def __getitem__(self, figure: str) -> Estimate | None:
        return self.figures.get(figure)

    def mean(self, figure: str) -> float:
        value = self.figures.get(figure)
        return value.mean if value else float("nan")

    @property
    def failures(self) -> str:
        """Beside a scheduler's name or figure, wherever schedulers are ranked."""
        return f" ({self.failed:,} failed)" if self.failed else ""


@dataclass(frozen=True)
class VariantResults:
    """One variant: its schedulers, fastest first, and the tests between them."""

    variant: str
    label: str
    value: float | None
    schedulers: dict[str, SchedulerResult]
    pairs: dict[str, list[PairedTest]]  # by figure, all pairs; Holm over those of the figure
    compared: list[tuple[str, str]]  # the pairs that the experiment asks for
    reference: dict[str, ReferenceRow]
    claims: list[Verdict]

    def ranked(self, figure: str) -> list[str]:
        """All but the Oracle by the mean of a figure, least first."""
        known = [n for n, result in self.schedulers.items() if n != ORACLE and result[figure]]
        return sorted(known, key=lambda name: (self.schedulers[name].mean(figure), name))

    def test(self, figure: str, first: str, second: str) -> PairedTest | None:
        return find_test(self.pairs[figure], first, second)

    def shown(self, name: str) -> str:
        """A scheduler's name, and how many of its tasks failed."""
        return name + self.schedulers[name].failures


@dataclass(frozen=True)
class Results:
    variants: list[VariantResults]
    sweep: dict[str, dict[str, PairedTest]]  # figure, scheduler: last variant over first

    def to_json(self) -> dict[str, Any]:
        return {"variants": {each.variant: each for each in self.variants}, "sweep": self.sweep}


def compute_results(study: Study) -> Results:
    return Results([_variant(study, variant) for variant in study.variants], _sweep_tests(study))


def find_test(tests: list[PairedTest], first: str, second: str) -> PairedTest | None:
    """first over second, in whichever direction it was tested."""
    for test in tests:
        if (test.first, test.second) == (first, second):
            return test
        if (test.first, test.second) == (second, first):
            return test.reversed()
    return None


def _variant(study: Study, variant: str) -> VariantResults:
    names = study.schedulers(variant)
    declared = study.experiment.variants.get(variant)
    pairs = {figure: _all_pairs(study, variant, names, figure) for figure in RANKED}
    return VariantResults(
        variant,
        study.label(variant),
        declared.value if declared else None,
        {name: _scheduler(study, variant, name) for name in names},
        pairs,
        _compared(study, names),
        compare_with_reference(study, variant),
        judge_claims(study, variant, lambda *pair: find_test(pairs["total_time"], *pair)),
    )


def _scheduler(study: Study, variant: str, name: str) -> SchedulerResult:
    columns = [column for column, measure in MEASURES.items() if not measure.derived]
    by_seed = {column: study.by_seed(variant, name, column) for column in columns}
    time, baseline = by_seed["total_time"], study.experiment.baseline
    oracle = study.by_seed(variant, ORACLE, "total_time")
    figures = {
        **{column: estimate([*values.values()]) for column, values in by_seed.items()},
        "over_oracle": ratio(time, oracle),
        "regret": estimate([time[seed] - oracle[seed] for seed in sorted(time.keys() & oracle)]),
        "speedup": ratio(study.by_seed(variant, baseline, "total_time"), time),
        "over_bound": ratio(by_seed["makespan"], by_seed["arrival_bound"]),
    }
    rows = study.rows(variant, name)
    return SchedulerResult(
        {figure: value for figure, value in figures.items() if value},
        sum(row["tasks"] or 0 for row in rows),
        sum(row["failed"] or 0 for row in rows),
        [row["recovered_after"] for row in rows],
    )


def _all_pairs(study: Study, variant: str, names: list[str], figure: str) -> list[PairedTest]:
    by_seed = {name: study.by_seed(variant, name, figure) for name in names}
    tests = [paired_test(pair, *(by_seed[n] for n in pair)) for pair in combinations(names, 2)]
    return corrected([test for test in tests if test])


def _compared(study: Study, names: list[str]) -> list[tuple[str, str]]:
    """Those of `compare` with all others; without it everyone with the baseline."""
    chosen = [name for name in study.experiment.compare if name in names]
    if not study.experiment.compare:
        return [(name, study.experiment.baseline) for name in names]
    return [
        (first, second)
        for i, first in enumerate(chosen)
        for second in names
        if second not in chosen[:i]
    ]


def _sweep_tests(study: Study) -> dict[str, dict[str, PairedTest]]:
    """The last variant of a sweep over the first, paired by seed; Holm over all of them."""
    if not study.is_sweep or len(study.variants) < 2:
        return {}
    first, *_, last = study.variants
    tests = {
        (figure, name): test
        for figure in SWEPT
        for name in study.schedulers()
        if (test := paired_test((name, name), study.by_seed(last, name, figure),
                                study.by_seed(first, name, figure)))
    }  # fmt: skip
    by_figure: dict[str, dict[str, PairedTest]] = {}
    for (figure, name), test in zip(tests, corrected([*tests.values()]), strict=True):
        by_figure.setdefault(figure, {})[name] = test
    return by_figure
