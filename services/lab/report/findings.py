"""The numbers behind the report: every figure of every scheduler with its interval, every test.

All that the text says and the tables show is worked out here and written to report.json.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

from services.lab.report.claims import Verdict, judged
from services.lab.report.data import ORACLE, BySeed, Study
from services.lab.report.reference import ReferenceComparison, against_reference
from services.lab.statistics import (
    Estimate,
    PairedTest,
    corrected,
    estimate,
    paired_test,
    ratio,
)

# Columns of the outcomes that are averaged over seeds.
FIGURES = (
    "total_time", "avg_time", "avg_wait", "avg_turnaround", "p95_turnaround", "p99_turnaround",
    "total_energy", "total_cost", "makespan", "bound", "arrival_bound", "gpu_share",
)  # fmt: skip

# Figures by which all pairs of schedulers are tested, for sentences about who is best.
RANKED = ("total_time", "makespan", "total_energy", "total_cost", "p95_turnaround")


@dataclass(frozen=True)
class Result:
    """One scheduler in one variant, over all seeds."""

    scheduler: str
    figures: dict[str, Estimate]
    over_oracle: Estimate | None  # total time
    speedup: Estimate | None  # the baseline's total time over this one's
    over_bound: Estimate | None  # makespan over the cluster bound
    over_arrival_bound: Estimate | None
    regret: Estimate | None  # seconds of execution more than the Oracle
    tasks: int  # judged, over all seeds
    failed: int
    recovered: list[int | None]  # after so many tasks, by seed

    def __getitem__(self, figure: str) -> Estimate | None:
        return self.figures.get(figure)

    def to_json(self) -> dict[str, Any]:
        more = ("over_oracle", "speedup", "over_bound", "over_arrival_bound", "regret")
        estimates = {**self.figures, **{name: getattr(self, name) for name in more}}
        return {
            **{name: found.to_json() if found else None for name, found in estimates.items()},
            "tasks": self.tasks,
            "failed": self.failed,
            "recovered_after": self.recovered,
        }


@dataclass(frozen=True)
class Contest:
    """One variant: its schedulers, fastest first, and who can be told apart by what."""

    variant: str
    label: str
    value: float | None
    results: dict[str, Result]
    pairs: dict[str, dict[tuple[str, str], PairedTest]]  # by figure; Holm over all pairs of it

    @property
    def rivals(self) -> list[str]:
        """Everyone but the Oracle, which knows the answer."""
        return [name for name in self.results if name != ORACLE]

    def best(self, figure: str, among: list[str] | None = None) -> list[str]:
        """Schedulers by the mean of a figure, least first."""
        known = [
            name
            for name in (self.results if among is None else among)
            if self.results[name][figure]
        ]
        return sorted(known, key=lambda name: (self.mean(name, figure), name))

    def mean(self, scheduler: str, figure: str) -> float:
        found = self.results[scheduler][figure]
        return found.mean if found else float("nan")

    def test(self, figure: str, first: str, second: str) -> PairedTest | None:
        """first against second, whichever way round it was tested."""
        pairs = self.pairs.get(figure, {})
        if (first, second) in pairs:
            return pairs[first, second]
        found = pairs.get((second, first))
        return None if found is None else reversed_test(found)


@dataclass(frozen=True)
class Findings:
    contests: list[Contest]
    tests: list[tuple[str, PairedTest]]  # variant and test; Holm over all of them
    references: list[tuple[str, ReferenceComparison]]
    claims: list[Verdict]

    def to_json(self) -> dict[str, Any]:
        return {
            "variants": {
                contest.variant: {
                    "label": contest.label,
                    "value": contest.value,
                    "schedulers": {
                        name: result.to_json() for name, result in contest.results.items()
                    },
                    "pairs": {
                        figure: [pair_json(test) for test in pairs.values()]
                        for figure, pairs in contest.pairs.items()
                    },
                }
                for contest in self.contests
            },
            "tests": [{"variant": variant, **pair_json(test)} for variant, test in self.tests],
            "reference": {variant: found.to_json() for variant, found in self.references},
            "claims": [verdict.to_json() for verdict in self.claims],
        }


def work_out(study: Study) -> Findings:
    contests = [_contest(study, variant) for variant in study.variants]
    declared = [
        (contest.variant, test) for contest in contests for test in _declared_tests(study, contest)
    ]
    adjusted = corrected([test for _, test in declared])
    tests = [(variant, test) for (variant, _), test in zip(declared, adjusted, strict=True)]
    references = []
    for contest in contests:
        found = against_reference(study.experiment.reference, study, contest.variant)
        if found is not None:
            references.append((contest.variant, found))
    claims = [
        verdict
        for contest in contests
        for verdict in judged(study, contest.variant, contest.pairs["total_time"])
    ]
    return Findings(contests, tests, references, claims)


def _contest(study: Study, variant: str) -> Contest:
    names = study.schedulers(variant)
    declared = study.experiment.variants.get(variant)
    return Contest(
        variant,
        study.label(variant),
        declared.value if declared else None,
        {name: _result(study, variant, name) for name in names},
        {figure: all_pairs(study, variant, names, figure) for figure in RANKED},
    )


def all_pairs(
    study: Study, variant: str, names: list[str], figure: str
) -> dict[tuple[str, str], PairedTest]:
    columns = {name: study.of(variant, name, figure) for name in names}
    found = [
        paired_test(pair, *(columns[name] for name in pair)) for pair in combinations(names, 2)
    ]
    return {(test.first, test.second): test for test in corrected([t for t in found if t])}


def _declared_tests(study: Study, contest: Contest) -> list[PairedTest]:
    """Those of `compare` against all others; without it everyone against the baseline."""
    names, chosen = list(contest.results), study.experiment.compare
    pairs: list[tuple[str, str]] = []
    for first in chosen or (study.experiment.baseline,):
        for second in names:
            pair = (first, second) if chosen else (second, first)
            if first in names and first != second and pair[::-1] not in pairs:
                pairs.append(pair)
    times = {name: study.of(contest.variant, name, "total_time") for name in names}
    found = [paired_test(pair, times[pair[0]], times[pair[1]]) for pair in pairs]
    return [test for test in found if test]


def _result(study: Study, variant: str, scheduler: str) -> Result:
    figures: dict[str, BySeed] = {
        figure: study.of(variant, scheduler, figure) for figure in FIGURES
    }
    oracle = study.of(variant, ORACLE, "total_time")
    baseline = study.of(variant, study.experiment.baseline, "total_time")
    time = figures["total_time"]
    regret = [time[seed] - oracle[seed] for seed in sorted(time.keys() & oracle.keys())]
    estimates = {name: estimate(list(values.values())) for name, values in figures.items()}
    rows = study.rows(variant, scheduler)
    return Result(
        scheduler=scheduler,
        figures={name: found for name, found in estimates.items() if found},
        over_oracle=ratio(time, oracle),
        speedup=ratio(baseline, time),
        over_bound=ratio(figures["makespan"], figures["bound"]),
        over_arrival_bound=ratio(figures["makespan"], figures["arrival_bound"]),
        regret=estimate(regret),
        tasks=sum(row["tasks"] or 0 for row in rows),
        failed=sum(row["failed"] or 0 for row in rows),
        recovered=[row["recovered_after"] for row in rows],
    )


def reversed_test(test: PairedTest) -> PairedTest:
    low, high = test.ratio.low, test.ratio.high
    turned = Estimate(
        1 / test.ratio.mean,
        None if high is None else 1 / high,
        None if low is None else 1 / low,
        test.ratio.n,
    )
    return PairedTest(test.second, test.first, turned, test.p, test.p_adjusted)


def pair_json(test: PairedTest) -> dict[str, Any]:
    return {
        "first": test.first,
        "second": test.second,
        "ratio": test.ratio.to_json(),
        "p": test.p,
        "p_adjusted": test.p_adjusted,
        "significant": test.significant,
    }
