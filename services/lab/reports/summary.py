"""The summary of a report: warnings, the claims with their verdicts, and who is best.

A scheduler is called better than the next only where the paired test distinguishes them after
correction.
"""

from __future__ import annotations

from services.lab.reports.claims import FAILS, HOLDS, UNDECIDED
from services.lab.reports.formatting import listed, number, p_value, with_interval
from services.lab.reports.results import MEASURES, Results, VariantResults
from services.lab.reports.study import Study

# In the order of the summary: what does not hold must not be overlooked.
_VERDICTS = (FAILS, UNDECIDED, HOLDS)


def summarize(study: Study, results: Results) -> list[str]:
    bullets = [*_failures(results), *_claims(study, results), *_best(results), *_reference(results)]
    if len(study.seeds) == 1:
        warning = "One seed only: no intervals, no tests, and any difference may be chance."
        return [warning, *bullets]
    return bullets


def _failures(results: Results) -> list[str]:
    failed = [
        f"{name} {result.failed:,} of {result.tasks:,} "
        f"({number(100 * result.failed / result.tasks)} %){_where(results, each)}"
        for each in results.variants
        for name, result in each.schedulers.items()
        if result.failed and result.tasks
    ]
    if not failed:
        return []
    return [
        f"Tasks failed because they did not fit a GPU's memory: {'; '.join(failed)}. A failed task "
        "costs no time, energy or money, so these schedulers seem better than they are."
    ]


def _where(results: Results, each: VariantResults) -> str:
    return f" in {each.label}" if len(results.variants) > 1 else ""


def _claims(study: Study, results: Results) -> list[str]:
    measured: dict[tuple[str, str], list[str]] = {}
    for each in sorted(results.claims, key=lambda each: _VERDICTS.index(each.verdict)):
        label = f"{study.label(each.variant)}: " if len(results.variants) > 1 else ""
        measured.setdefault((each.verdict, each.claim), []).append(label + each.measured)
    return [
        f"Claim {verdict}: {claim} ({'; '.join(figures)})."
        for (verdict, claim), figures in measured.items()
    ]


def _best(results: Results) -> list[str]:
    bullets = []
    if leaders := _leaders(results, "total_time"):
        margin = _margin(results.variants[0]) if len(results.variants) == 1 else ""
        bullets.append(f"Least total time, the Oracle left out: {leaders}{margin}.")
    others = [
        f"Least {MEASURES[column].name.lower()}: {leaders}."
        for column in ("makespan", "total_energy", "total_cost")
        if (leaders := _leaders(results, column))
    ]
    return [*bullets, " ".join(others)] if others else bullets


def _leaders(results: Results, column: str) -> str:
    """The best scheduler of each variant, and those that the tests do not distinguish from it."""
    variants: dict[str, list[str]] = {}
    for each in results.variants:
        best, *others = each.ranked(column) or [""]
        tests = {name: each.test(column, name, best) for name in others}
        tied = [n for n, t in tests.items() if t and t.p is not None and not t.significant]
        leader = f"{best} (not distinguished from {listed(tied)})" if tied else best
        if leader:
            variants.setdefault(leader, []).append(each.label)
    if len(variants) == 1:
        return next(iter(variants)) + " in every variant" * (len(results.variants) > 1)
    return "; ".join(f"{leader} in {listed(labels)}" for leader, labels in variants.items())


def _margin(each: VariantResults) -> str:
    best, *others = each.ranked("total_time")
    result = each.schedulers[best]
    text = f", {with_interval(result['total_time'], 's')}"
    if result.over_oracle is not None:
        text += f", {with_interval(result.over_oracle)} times the Oracle's"
    if others and (test := each.test("total_time", others[0], best)):
        p = f" ({p_value(test.p_adjusted)} after Holm)" if test.p_adjusted is not None else ""
        text += f". Next: {others[0]}, {with_interval(test.ratio)} times as long{p}"
    return text


def _reference(results: Results) -> list[str]:
    by_variant = {each.variant: each for each in results.variants}
    bullets = []
    for variant, compared in results.references:
        each = by_variant[variant]
        swapped = []
        for first, second in compared.swapped:
            test = each.test("total_time", first, second)
            doubt = "" if test and test.significant else " (not significant)"
            swapped.append(f"{second} is faster than {first} here{doubt}")
        order = f"differs: {'; '.join(swapped)}" if swapped else "is the same"
        missing = f" Not in these runs: {listed(compared.missing)}." if compared.missing else ""
        where = _where(results, each)
        bullets.append(f"The order of the means in the reference and here{where} {order}.{missing}")
    return bullets
