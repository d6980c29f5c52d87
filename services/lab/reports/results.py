"""The numbers of a report: every figure of every scheduler with its interval, every test.

The tables, the summary and report.json all show these.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from services.lab.experiments.tables import MEASURES
from services.lab.reports.claims import Verdict, judge_claims
from services.lab.reports.columns import COLUMNS
from services.lab.reports.formatting import labelled
from services.lab.reports.reference import ReferenceRow, compare_with_reference
from services.lab.reports.statistics import (
    Estimate,
    PairedTest,
    corrected,
    estimate,
    find_test,
    paired_test,
    ratio,
)
from services.lab.reports.study import Study
from shared.domain.schedulers import CLAIRVOYANT, ORACLE, REFERENCES

# All pairs of schedulers are tested by these.
TESTED = [*MEASURES.values(), "p95_turnaround", "p99_turnaround"]
# Tested from one end of a sweep to the other.
SWEPT = ["avg_turnaround", "total_time", "total_energy", "total_cost"]

# A scheduler breaks down where its mean turnaround is this many times that of the lowest load, or
# its makespan this many times the arrival bound: then work is left over when arrivals end.
MOST_TURNAROUND, MOST_MAKESPAN = 10.0, 1.1


@dataclass(frozen=True)
class SchedulerResult:
    """One scheduler in one variant, over all seeds."""

    figures: dict[str, Estimate]  # of COLUMNS
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
        """The number of failed tasks, shown beside a ranked scheduler's name or figure."""
        return f" ({self.failed:,} failed)" if self.failed else ""


@dataclass(frozen=True)
class VariantResults:
    """One variant: its schedulers, best first, and the tests between them."""

    variant: str
    label: str
    value: float | None
    schedulers: dict[str, SchedulerResult]
    pairs: dict[str, list[PairedTest]]  # by figure, all pairs; Holm over those of the figure
    asked: list[PairedTest]  # by the measure, of the pairs that the experiment asks for; Holm
    reference: dict[str, ReferenceRow]
    claims: list[Verdict]

    def ranked(self, figure: str) -> list[str]:
        """All but the references by the mean of a figure, least first."""
        known = [n for n, each in self.schedulers.items() if n not in REFERENCES and each[figure]]
        return sorted(known, key=lambda name: (self.schedulers[name].mean(figure), name))

    def test(self, figure: str, first: str, second: str) -> PairedTest | None:
        return find_test(self.pairs[figure], first, second)

    def shown(self, name: str) -> str:
        """A scheduler's name, and how many of its tasks failed."""
        return labelled(name) + self.schedulers[name].failures


@dataclass(frozen=True)
class Results:
    ranked_by: str  # a figure
    variants: list[VariantResults]
    sweep: dict[str, dict[str, PairedTest]]  # figure, scheduler: last variant over first
    breakdown: dict[str, float | None]  # scheduler: the least value at which it breaks down


def compute_results(study: Study) -> Results:
    variants = [_variant(study, variant) for variant in study.variants]
    return Results(study.ranked_by, variants, _sweep_tests(study), _breakdown(study, variants))


def _variant(study: Study, variant: str) -> VariantResults:
    names = study.schedulers(variant)
    declared = study.experiment.variants.get(variant)
    pairs = {figure: _all_pairs(study, variant, names, figure) for figure in TESTED}
    return VariantResults(
        variant,
        study.label(variant),
        declared.value if declared else None,
        {name: _scheduler(study, variant, name) for name in names},
        pairs,
        corrected(_requested_tests(study, variant, names)),
        compare_with_reference(study, variant),
        judge_claims(study, variant, pairs),
    )


def _scheduler(study: Study, variant: str, name: str) -> SchedulerResult:
    by_seed = {
        column: study.by_seed(variant, name, column)
        for column, figure in COLUMNS.items()
        if not figure.derived
    }
    time, makespan = by_seed["total_time"], by_seed["makespan"]
    oracle = study.by_seed(variant, ORACLE, "total_time")
    ideal = study.by_seed(variant, CLAIRVOYANT, "avg_turnaround")
    figures = {
        **{column: estimate([*values.values()]) for column, values in by_seed.items()},
        "over_oracle": ratio(time, oracle),
        "over_clairvoyant": ratio(by_seed["avg_turnaround"], ideal),
        "regret": estimate([time[seed] - oracle[seed] for seed in sorted(time.keys() & oracle)]),
        "speedup": ratio(study.by_seed(variant, study.experiment.baseline, "total_time"), time),
        "over_bound": ratio(makespan, by_seed["arrival_bound"]),
        "over_critical_path": ratio(makespan, study.by_seed(variant, name, "critical_path")),
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


def _requested_tests(study: Study, variant: str, names: list[str]) -> list[PairedTest]:
    """Those of `compare` against all others; without it, all others against the baseline."""
    chosen = [name for name in study.experiment.compare if name in names]
    pairs = [
        (first, second)
        for i, first in enumerate(chosen)
        for second in names
        if second not in chosen[: i + 1]
    ]
    if not study.experiment.compare:
        baseline = study.experiment.baseline
        pairs = [(name, baseline) for name in names if name != baseline]
    by_seed = {name: study.by_seed(variant, name, study.ranked_by) for name in names}
    tests = [paired_test(pair, *(by_seed.get(name, {}) for name in pair)) for pair in pairs]
    return [test for test in tests if test]


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


def _breakdown(study: Study, variants: list[VariantResults]) -> dict[str, float | None]:
    if "breakdown" not in study.experiment.figures or not study.is_sweep or not variants:
        return {}
    return {name: _breaks_down_at(variants, name) for name in study.schedulers()}


def _breaks_down_at(variants: list[VariantResults], name: str) -> float | None:
    known = [(each.value, each.schedulers[name]) for each in variants if name in each.schedulers]
    least = known[0][1].mean("avg_turnaround")
    for value, result in known:
        slow = result.mean("avg_turnaround") > MOST_TURNAROUND * least
        if slow or result.mean("over_bound") > MOST_MAKESPAN:
            return value
    return None
