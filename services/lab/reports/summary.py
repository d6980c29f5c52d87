"""The summary of a report: warnings, the claims with their verdicts, and who is best.

A scheduler is called better than the next only where the paired test distinguishes them after
correction.
"""

from __future__ import annotations

from services.lab.reports.claims import FAILS, HOLDS, UNDECIDED
from services.lab.reports.columns import COLUMNS
from services.lab.reports.formatting import listed, number, p_value, with_interval
from services.lab.reports.results import Results, VariantResults
from services.lab.reports.statistics import ENOUGH_SEEDS, IDENTICAL, NOT_DISTINGUISHED
from services.lab.reports.study import Study
from shared.domain.schedulers import AGENT

CHARGED = "A failed task is charged its time on the slowest device type that can run it."

# Who is best by these stands below who is best by the experiment's measure.
_ALSO = ("avg_turnaround", "p99_turnaround", "total_time", "makespan", "total_energy", "total_cost")


def summarize(study: Study, results: Results) -> list[str]:
    return [
        *_seeds(len(study.seeds)),
        *_best(results),
        *_trained_for(study),
        *_breakdown(study, results),
        *_failures(results),
        *_claims(results),
    ]


def _seeds(count: int) -> list[str]:
    if count == 1:
        return ["One seed only: no intervals, no tests, and any difference may be chance."]
    too_few = f"Too few seeds ({count}): who is best by the means may be so by chance."
    return [too_few] if 1 < count < ENOUGH_SEEDS else []


def _where(results: Results, each: VariantResults) -> str:
    return f" in {each.label}" if len(results.variants) > 1 else ""


def _best(results: Results) -> list[str]:
    leaders = _leaders(results, results.ranked_by, with_ties=True)
    if not leaders:
        return []
    margin = _margin(results.variants[0], results.ranked_by) if len(results.variants) == 1 else ""
    others = {column: _leaders(results, column) for column in _ALSO if column != results.ranked_by}
    also = [f"{COLUMNS[column].name.lower()}: {text}" for column, text in others.items() if text]
    return [
        f"Least {COLUMNS[results.ranked_by].name.lower()}: {leaders}{margin}.",
        f"By the means alone, least {'. Least '.join(also)}.",
    ]


def _trained_for(study: Study) -> list[str]:
    """Learners that minimise something else than what they are ranked by."""
    weights = {
        study.experiment.run_spec(variant, study.seeds[0]).learning.energy_weight
        for variant in study.variants
        if variant in study.experiment.variants and AGENT in study.schedulers(variant)
    }
    if not any(weights) or study.ranked_by == "total_energy":
        return []
    span = f"{min(weights):g} to {max(weights):g}" if len(weights) > 1 else f"{max(weights):g}"
    return [
        f"{AGENT} is trained for time and energy (energy_weight {span}), not for "
        f"{COLUMNS[study.ranked_by].name.lower()} alone: judge its energy as well."
    ]


def _leaders(results: Results, column: str, *, with_ties: bool = False) -> str:
    """The best scheduler of each variant, and those that the tests do not distinguish from it."""
    variants: dict[str, list[str]] = {}
    for each in results.variants:
        best, *behind = each.ranked(column) or [""]
        tests = {name: each.test(column, name, best) for name in behind if with_ties}
        tied = [n for n, t in tests.items() if t and t.verdict in (NOT_DISTINGUISHED, IDENTICAL)]
        if best:
            others = listed(map(each.shown, tied)) if len(tied) < 4 else f"{len(tied)} others"
            doubt = f" (not distinguished from {others})" if tied else ""
            variants.setdefault(each.shown(best) + doubt, []).append(each.label)
    if len(variants) == 1:
        return next(iter(variants)) + " in every variant" * (len(results.variants) > 1)
    return "; ".join(f"{leader} in {listed(labels)}" for leader, labels in variants.items())


def _margin(each: VariantResults, column: str) -> str:
    """The figure of the best, beside the references, and the next one."""
    best, *others = each.ranked(column)
    result = each.schedulers[best]
    text = f", {with_interval(result[column], COLUMNS[column].unit)}"
    reference = {"total_time": "over_oracle", "avg_turnaround": "over_clairvoyant"}.get(column, "")
    if over := result[reference]:
        text += f", {with_interval(over)} {COLUMNS[reference].name}"
    if others and (test := each.test(column, others[0], best)):
        p = f" ({p_value(test.p_adjusted)} after Holm)" if test.p_adjusted is not None else ""
        text += f". Next: {each.shown(others[0])}, {with_interval(test.ratio)} times as much{p}"
    return text


def _breakdown(study: Study, results: Results) -> list[str]:
    at: dict[float | None, list[str]] = {}
    for name, value in results.breakdown.items():
        at.setdefault(value, []).append(name)
    axis, last = study.experiment.axis or "value", results.variants[-1:]
    breaking = [f"{listed(at[value])} at {value:g}" for value in sorted(v for v in at if v)]
    texts = [f"Breaks down by {axis}: {'; '.join(breaking)}."] if breaking else []
    if None in at and last:
        texts.append(f"Does not up to {last[0].value:g}: {listed(at[None])}.")
    return [" ".join(texts)] if texts else []


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
    """What does not hold comes first: it must not be overlooked."""
    measured: dict[tuple[str, str], list[str]] = {}
    for verdict in (FAILS, UNDECIDED, HOLDS):
        for each in results.variants:
            label = f"{each.label}: " if len(results.variants) > 1 else ""
            for claim in (claim for claim in each.claims if claim.verdict == verdict):
                measured.setdefault((verdict, claim.claim), []).append(label + claim.measured)
    return [
        f"Claim {verdict}: {claim} ({'; '.join(figures)})."
        for (verdict, claim), figures in measured.items()
    ]
