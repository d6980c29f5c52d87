"""The numbers of a report: every figure of every scheduler with its interval, every test.

The tables, the summary and report.json all show these.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from typing import Any

from services.lab.reports.claims import Verdict, judge_claims
from services.lab.reports.reference import ReferenceComparison, compare_with_reference
from services.lab.reports.statistics import (
    Estimate,
    PairedTest,
    corrected,
    estimate,
    paired_test,
    ratio,
)
from services.lab.reports.study import BySeed, Study
from shared.domain.schedulers import ORACLE


@dataclass(frozen=True)
class Measure:
    """A column of the outcomes that is averaged over seeds."""

    name: str
    unit: str = "s"
    ranked: bool = False  # all pairs of schedulers are tested by it
    swept: bool = False  # tested from one end of a sweep to the other

    @property
    def header(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name


MEASURES = {
    "total_time": Measure("Total time", ranked=True, swept=True),
    "avg_time": Measure("Time per task"),
    "makespan": Measure("Makespan", ranked=True),
    "total_energy": Measure("Energy", "J", ranked=True, swept=True),
    "total_cost": Measure("Cost", "$", ranked=True, swept=True),
    "p95_turnaround": Measure("p95 turnaround", ranked=True),
    "p99_turnaround": Measure("p99 turnaround"),
    "avg_turnaround": Measure("Mean turnaround", swept=True),
    "avg_wait": Measure("Mean wait"),
    "bound": Measure("Cluster bound"),
    "arrival_bound": Measure("Arrival bound"),
    "gpu_share": Measure("Share on GPUs", ""),
}
RANKED = [column for column, measure in MEASURES.items() if measure.ranked]
SWEPT = [column for column, measure in MEASURES.items() if measure.swept]


@dataclass(frozen=True)
class SchedulerResult:
    """One scheduler in one variant, over all seeds."""

    figures: dict[str, Estimate]
    over_oracle: Estimate | None  # total time
    speedup: Estimate | None  # the baseline's total time over this one's
    over_bound: Estimate | None  # makespan over the cluster bound
    over_arrival_bound: Estimate | None
    regret: Estimate | None  # seconds of execution more than the Oracle
    tasks: int  # judged, over all seeds
    failed: int
    recovered_after: list[int | None]  # tasks, by seed

    def __getitem__(self, figure: str) -> Estimate | None:
        return self.figures.get(figure)

    def mean(self, figure: str) -> float:
        value = self.figures.get(figure)
        return value.mean if value else float("nan")

    def to_json(self) -> dict[str, Any]:
        fields = asdict(self)
        return {**fields.pop("figures"), **fields}


@dataclass(frozen=True)
class VariantResults:
    """One variant: its schedulers, fastest first, and the tests of all pairs of them."""

    variant: str
    label: str
    value: float | None
    schedulers: dict[str, SchedulerResult]
    pairs: dict[str, dict[tuple[str, str], PairedTest]]  # by figure; Holm over all pairs of it

    def ranked(self, figure: str) -> list[str]:
        """All but the Oracle by the mean of a figure, least first."""
        known = [n for n, result in self.schedulers.items() if n != ORACLE and result[figure]]
        return sorted(known, key=lambda name: (self.schedulers[name].mean(figure), name))

    def test(self, figure: str, first: str, second: str) -> PairedTest | None:
        """first over second, in whichever direction it was tested."""
        pairs = self.pairs.get(figure, {})
        if (first, second) in pairs:
            return pairs[first, second]
        reverse = pairs.get((second, first))
        return reverse.reversed() if reverse else None


@dataclass(frozen=True)
class Results:
    variants: list[VariantResults]
    tests: list[tuple[str, PairedTest]]  # variant and test; Holm over all of them
    sweep: dict[str, dict[str, PairedTest]]  # figure, scheduler: last variant over first
    references: list[tuple[str, ReferenceComparison]]
    claims: list[Verdict]

    def to_json(self) -> dict[str, Any]:
        return {
            "variants": {
                each.variant: {
                    "label": each.label,
                    "value": each.value,
                    "schedulers": {n: result.to_json() for n, result in each.schedulers.items()},
                    "pairs": {
                        figure: [test.to_json() for test in pairs.values()]
                        for figure, pairs in each.pairs.items()
                    },
                }
                for each in self.variants
            },
            "tests": [{"variant": variant, **test.to_json()} for variant, test in self.tests],
            "sweep": {
                figure: {name: test.to_json() for name, test in tests.items()}
                for figure, tests in self.sweep.items()
            },
            "reference": {variant: compared.to_json() for variant, compared in self.references},
            "claims": [asdict(verdict) for verdict in self.claims],
        }


def compute_results(study: Study) -> Results:
    variants = [_variant(study, variant) for variant in study.variants]
    declared = [(each.variant, test) for each in variants for test in _declared_tests(study, each)]
    adjusted = corrected([test for _, test in declared])
    references = [(each.variant, compare_with_reference(study, each.variant)) for each in variants]
    return Results(
        variants,
        [(variant, test) for (variant, _), test in zip(declared, adjusted, strict=True)],
        _sweep_tests(study, variants),
        [(variant, compared) for variant, compared in references if compared is not None],
        [
            verdict
            for each in variants
            for verdict in judge_claims(study, each.variant, partial(each.test, "total_time"))
        ],
    )


def _variant(study: Study, variant: str) -> VariantResults:
    names = study.schedulers(variant)
    declared = study.experiment.variants.get(variant)
    return VariantResults(
        variant,
        study.label(variant),
        declared.value if declared else None,
        {name: _scheduler(study, variant, name) for name in names},
        {figure: _all_pairs(study, variant, names, figure) for figure in RANKED},
    )


def _scheduler(study: Study, variant: str, name: str) -> SchedulerResult:
    figures: dict[str, BySeed] = {f: study.by_seed(variant, name, f) for f in MEASURES}
    oracle = study.by_seed(variant, ORACLE, "total_time")
    baseline = study.by_seed(variant, study.experiment.baseline, "total_time")
    time = figures["total_time"]
    rows = study.rows(variant, name)
    estimates = {figure: estimate([*values.values()]) for figure, values in figures.items()}
    return SchedulerResult(
        figures={figure: value for figure, value in estimates.items() if value},
        over_oracle=ratio(time, oracle),
        speedup=ratio(baseline, time),
        over_bound=ratio(figures["makespan"], figures["bound"]),
        over_arrival_bound=ratio(figures["makespan"], figures["arrival_bound"]),
        regret=estimate([time[seed] - oracle[seed] for seed in sorted(time.keys() & oracle)]),
        tasks=sum(row["tasks"] or 0 for row in rows),
        failed=sum(row["failed"] or 0 for row in rows),
        recovered_after=[row["recovered_after"] for row in rows],
    )


def _all_pairs(
    study: Study, variant: str, names: list[str], figure: str
) -> dict[tuple[str, str], PairedTest]:
    columns = {name: study.by_seed(variant, name, figure) for name in names}
    tests = [paired_test(pair, *(columns[n] for n in pair)) for pair in combinations(names, 2)]
    return {(test.first, test.second): test for test in corrected([t for t in tests if t])}


def _declared_tests(study: Study, results: VariantResults) -> list[PairedTest]:
    """Those of `compare` against all others; without it everyone against the baseline."""
    names, chosen = list(results.schedulers), study.experiment.compare
    pairs: list[tuple[str, str]] = []
    for first in chosen or (study.experiment.baseline,):
        for second in names:
            pair = (first, second) if chosen else (second, first)
            if first in names and first != second and pair[::-1] not in pairs:
                pairs.append(pair)
    times = {name: study.by_seed(results.variant, name, "total_time") for name in names}
    tests = [paired_test(pair, times[pair[0]], times[pair[1]]) for pair in pairs]
    return [test for test in tests if test]


def _sweep_tests(study: Study, variants: list[VariantResults]) -> dict[str, dict[str, PairedTest]]:
    """The last variant of a sweep over the first, paired by seed; Holm over all of them."""
    if not study.is_sweep or len(variants) < 2:
        return {}
    ends = variants[0].variant, variants[-1].variant
    tests: list[tuple[str, PairedTest]] = []
    for figure in SWEPT:
        for name in study.schedulers():
            before, after = (study.by_seed(variant, name, figure) for variant in ends)
            test = paired_test((name, name), after, before)
            if test is not None:
                tests.append((figure, test))
    by_figure: dict[str, dict[str, PairedTest]] = {}
    for (figure, _), test in zip(tests, corrected([t for _, t in tests]), strict=True):
        by_figure.setdefault(figure, {})[test.first] = test
    return by_figure
