"""The summary of a report: warnings, the claims with their verdicts, and who is best.

A scheduler is called better than the next only where the paired test distinguishes them after
correction.
"""

from __future__ import annotations

from itertools import combinations

from services.lab.reports.claims import FAILS, HOLDS, UNDECIDED
from services.lab.reports.formatting import listed, number, p_value, with_interval
from services.lab.reports.results import MEASURES, Results, VariantResults
from services.lab.reports.study import Study

# In the order of the summary: what does not hold must not be overlooked.
_VERDICTS = (FAILS, UNDECIDED, HOLDS)

CHARGED = "A failed task is charged its time on the slowest device type that can run it."


def summarize(study: Study, results: Results) -> list[str]:
    warning = "One seed only: no intervals, no tests, and any difference may be chance."
    return [
        *([warning] if len(study.seeds) == 1 else []),
        *_failures(results),
        *_claims(results),
        *_best(results),
        *(_reference(each, _where(results, each)) for each in results.variants if each.reference),
    ]


def _where(results: Results, each: VariantResults) -> str:
    return f" in {each.label}" if len(results.variants) > 1 else ""


def _failures(results: Results) -> list[str]:
    failed = [
        f"{name} {result.failed:,} of {result.tasks:,} "
        f"({number(100 * result.failed / result.tasks)} %){_where(results, each)}"
        for each in results.variants
        for name, result in each.schedulers.items()
        if result.failed and result.tasks
    ]
    return [f"Tasks failed: {'; '.join(failed)}. {CHARGED}"] if failed else []


def _claims(results: Results) -> list[str]:
    measured: dict[tuple[str, str], list[str]] = {}
    for verdict in _VERDICTS:
        for each in results.variants:
            label = f"{each.label}: " if len(results.variants) > 1 else ""
            for claim in (claim for claim in each.claims if claim.verdict == verdict):
                measured.setdefault((verdict, claim.claim), []).append(label + claim.measured)
    return [
        f"Claim {verdict}: {claim} ({'; '.join(figures)})."
        for (verdict, claim), figures in measured.items()
    ]


def _best(results: Results) -> list[str]:
    columns = ("total_time", "avg_turnaround", "makespan", "total_energy", "total_cost")
    leaders = {MEASURES[each].name.lower(): _leaders(results, each) for each in columns}
    others = [f"Least {name}: {text}." for name, text in list(leaders.items())[1:] if text]
    if not leaders["total time"]:
        return []
    margin = _margin(results.variants[0]) if len(results.variants) == 1 else ""
    first = f"Least total time, the Oracle left out: {leaders['total time']}{margin}."
    return [first, " ".join(others)]


def _leaders(results: Results, column: str) -> str:
    """The best scheduler of each variant, and those that the tests do not distinguish from it."""
    variants: dict[str, list[str]] = {}
    for each in results.variants:
        best, *others = each.ranked(column) or [""]
        tests = {name: each.test(column, name, best) for name in others}
        tied = [n for n, t in tests.items() if t and t.p is not None and not t.significant]
        if best:
            doubt = f" (not distinguished from {listed(map(each.shown, tied))})" if tied else ""
            variants.setdefault(each.shown(best) + doubt, []).append(each.label)
    if len(variants) == 1:
        return next(iter(variants)) + " in every variant" * (len(results.variants) > 1)
    return "; ".join(f"{leader} in {listed(labels)}" for leader, labels in variants.items())


def _margin(each: VariantResults) -> str:
    best, *others = each.ranked("total_time")
    result = each.schedulers[best]
    text = f", {with_interval(result['total_time'], 's')}"
    if over_oracle := result["over_oracle"]:
        text += f", {with_interval(over_oracle)} times the Oracle's"
    if others and (test := each.test("total_time", others[0], best)):
        p = f" ({p_value(test.p_adjusted)} after Holm)" if test.p_adjusted is not None else ""
        text += f". Next: {each.shown(others[0])}, {with_interval(test.ratio)} times as long{p}"
    return text


def _reference(each: VariantResults, where: str) -> str:
    swapped = []
    for (first, ours), (second, theirs) in combinations(each.reference.items(), 2):
        if ours.our_rank > theirs.our_rank and ours.theirs < theirs.theirs:
            test = each.test("total_time", first, second)
            doubt = "" if test and test.significant else " (not significant)"
            swapped.append(f"{second} is faster than {first} here{doubt}")
    order = f"differs: {'; '.join(swapped)}" if swapped else "is the same"
    return f"The order of the means in the reference and here{where} {order}."
