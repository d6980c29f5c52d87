"""The claims that an experiment declares beforehand, judged by its results.

A claim holds when the complete 95 % interval (or every test) agrees with it, does not hold when
the complete interval disagrees, and is undecided otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from services.lab.experiments.declaration import Claim
from services.lab.experiments.tables import MEASURES
from services.lab.reports.columns import COLUMNS
from services.lab.reports.formatting import NEAR_ORACLE, listed, with_interval
from services.lab.reports.statistics import (
    ENOUGH_SEEDS,
    Estimate,
    PairedTest,
    estimate,
    find_test,
    ratio,
)
from services.lab.reports.study import Study

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"


@dataclass(frozen=True)
class Verdict:
    claim: str
    verdict: str
    measured: str


def judge_claims(
    study: Study, variant: str, pairs: Mapping[str, Sequence[PairedTest]]
) -> list[Verdict]:
    """`pairs` are the tests between all schedulers by column of the outcomes."""
    verdicts = []
    for claim in study.experiment.claims:
        if claim.variants and variant not in claim.variants:
            continue
        verdict, measured = _judge(study, variant, claim, pairs[MEASURES[claim.measure]])
        failed = {n: sum(row["failed"] or 0 for row in study.rows(variant, n)) for n in claim.names}
        notes = [f"{count:,} tasks of {name} failed" for name, count in failed.items() if count]
        if verdict == UNDECIDED and len(study.seeds) < ENOUGH_SEEDS:
            notes.append("too few seeds")
        verdicts.append(Verdict(_text(claim), verdict, "; ".join([measured, *notes])))
    return verdicts


def _text(claim: Claim) -> str:
    measure = COLUMNS[MEASURES[claim.measure]].name.lower()
    if claim.ratio is not None:
        limit = "least" if claim.at_most is None else "most"
        times = claim.at_least or claim.at_most
        return f"{claim.ratio[0]} has at {limit} {times:g} times the {measure} of {claim.ratio[1]}"
    if claim.recovered is not None:
        return f"{claim.recovered} is {NEAR_ORACLE} again after at most {claim.within_tasks} tasks"
    return f"from least to greatest {measure}: {', '.join(claim.order or ())}"


def _judge(
    study: Study, variant: str, claim: Claim, tests: Sequence[PairedTest]
) -> tuple[str, str]:
    if absent := sorted(set(claim.names) - set(study.schedulers(variant))):
        return UNDECIDED, f"{listed(absent)} did not run"
    if claim.ratio is not None:
        column = MEASURES[claim.measure]
        measured = ratio(*(study.by_seed(variant, name, column) for name in claim.ratio))
        verdict = _compare(measured, claim.at_least, claim.at_most)
        return verdict, f"{with_interval(measured)} times"
    if claim.recovered is not None:
        return _judge_recovery(study, variant, claim.recovered, claim.within_tasks or 0)
    return _judge_order(claim.order or (), tests)


def _compare(measured: Estimate | None, least: float | None, most: float | None) -> str:
    if measured is None or measured.low is None or measured.high is None:
        return UNDECIDED
    least, most = -math.inf if least is None else least, math.inf if most is None else most
    if least <= measured.low and measured.high <= most:
        return HOLDS
    return FAILS if measured.high < least or measured.low > most else UNDECIDED


def _judge_recovery(study: Study, variant: str, name: str, limit: int) -> tuple[str, str]:
    by_seed = [row["recovered_after"] for row in study.rows(variant, name)]
    known = [float(tasks) for tasks in by_seed if tasks is not None]
    if len(known) < len(by_seed):
        return FAILS, f"never in {len(by_seed) - len(known)} of {len(by_seed)} seeds"
    mean = estimate(known)
    span = f"{min(known):.0f} to {max(known):.0f} by seed"
    return _compare(mean, None, float(limit)), f"{with_interval(mean)} tasks, {span}"


def _judge_order(names: tuple[str, ...], tests: Sequence[PairedTest]) -> tuple[str, str]:
    wrong = [
        f"{second} has less than {first}"
        for first, second in combinations(names, 2)
        if (test := find_test(tests, second, first)) and test.significant and test.ratio.mean < 1
    ]
    if wrong:
        return FAILS, "; ".join(wrong)
    unclear = [
        f"{first} and {second}"
        for first, second in pairwise(names)
        if (test := find_test(tests, second, first)) is None or not test.significant
    ]
    if unclear:
        return UNDECIDED, f"not distinguished: {'; '.join(unclear)}"
    return HOLDS, "every step is significant"
