"""The sections of a report: tables and figures first, then methods and provenance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from services.lab.experiments.tables import RECOVERY_WINDOW
from services.lab.reports.document import Block, Document, Figure, Section, Table, Text
from services.lab.reports.figures.draw import Picture
from services.lab.reports.formatting import (
    NEAR_ORACLE,
    counted,
    number,
    p_value,
    plus_minus,
    with_interval,
)
from services.lab.reports.methods import methods, provenance
from services.lab.reports.results import MEASURES, RANKED, SWEPT, Results, SchedulerResult
from services.lab.reports.statistics import estimate
from services.lab.reports.study import Study
from shared.domain.schedulers import ORACLE

_TOTALS = ("total_time", "avg_time", "makespan", "total_energy", "total_cost", "p95_turnaround")

_RATIOS: dict[str, Callable[[SchedulerResult], str]] = {
    "× Oracle": lambda result: with_interval(result.over_oracle),
    "Regret (s)": lambda result: plus_minus(result.regret),
    "Makespan × bound": lambda result: with_interval(result.over_bound),
    "× arrival bound": lambda result: with_interval(result.over_arrival_bound),
    "Wait / execution": lambda result: number(_wait_over_execution(result)),
    "Share on GPUs": lambda result: plus_minus(result["gpu_share"]),
    "Recovered after": lambda result: _recovered(result.recovered_after),
}

# Figures that stand in a section of their own, in this order; all others stand together before.
_OWN_SECTION = ("reference", "models", "workload", "graph")


def make_document(
    study: Study, results: Results, summary: list[str], pictures: list[Picture]
) -> Document:
    experiment, facts = study.experiment, study.provenance
    order = {name: i for i, name in enumerate(_OWN_SECTION)}
    pictures = sorted(pictures, key=lambda picture: order.get(picture.name, -1))
    figures = {picture.name: Figure(picture, i) for i, picture in enumerate(pictures, start=1)}

    def own(*names: str) -> list[Block]:
        return [figures[name] for name in names if name in figures]

    paragraphs = filter(None, experiment.explanation.strip().split("\n\n"))
    sections = [
        Section("Background", [Text(" ".join(each.split())) for each in paragraphs]),
        Section("Outcomes", _outcomes(study, results)),
        Section("Claims", _claims(study, results)),
        Section("Best by each figure", _best(study, results)),
        Section("From one end of the sweep to the other", _sweep(study, results)),
        Section("Figures", own(*(name for name in figures if name not in order))),
        Section("Tests between schedulers", _tests(study, results)),
        Section("Beside the reference", [*_reference(study, results), *own("reference")]),
        Section("Models", [*_models(study), *own("models")]),
        Section("Workload", own("workload", "graph")),
        Section("Methods", methods(study)),
        Section("Provenance", provenance(study)),
    ]
    byline = (
        f"Experiment {experiment.name} · {counted(len(study.seeds), 'seed')} · "
        f"{counted(experiment.tasks, 'task')} a run, {experiment.judged:,} judged · "
        f"version {facts.get('version', '–')} · {str(facts.get('finished_at', ''))[:10]}"
    )
    question = " ".join(experiment.question.split())
    return Document(experiment.title, question, byline, summary, sections)


def _outcomes(study: Study, results: Results) -> list[Block]:
    note = "One seed, so no intervals."
    if len(study.seeds) > 1:
        note = (
            f"Means over {len(study.seeds)} seeds ± half the width of their 95 % confidence "
            "interval; ratios are paired by seed, with the interval in brackets."
        )
    note += (
        " × Oracle: total execution time over the Oracle's; regret is their difference. × bound: "
        "makespan over the cluster bound; × arrival bound: over the bound that also respects "
        "arrivals (near 1 the arrivals set the makespan, not the scheduler). Wait / execution: "
        "mean wait over mean execution time; far above 1 the cluster is overloaded."
    )
    ratios = dict(_RATIOS)
    if "recovery" in study.experiment.figures and ORACLE in study.schedulers():
        note += (
            f" Recovered after: judged tasks until the execution time is {NEAR_ORACLE} over the "
            f"next {RECOVERY_WINDOW} tasks, least to greatest by seed."
        )
    else:
        del ratios["Recovered after"]
    blocks: list[Block] = []
    for each in results.variants:
        if len(results.variants) > 1:
            blocks.append(Text(each.label, "heading"))
        totals = [
            [name, *(plus_minus(result[column]) for column in _TOTALS), f"{result.failed:,}"]
            for name, result in each.schedulers.items()
        ]
        over = [
            [name, *(cell(result) for cell in ratios.values())]
            for name, result in each.schedulers.items()
        ]
        headers = [MEASURES[column].header for column in _TOTALS]
        blocks.append(Table(["Scheduler", *headers, "Failed"], totals))
        blocks.append(Table(["Scheduler", *ratios], over))
    return [*blocks, Text(note)]


def _wait_over_execution(result: SchedulerResult) -> float | None:
    time = result.mean("avg_time")
    return result.mean("avg_wait") / time if time else None


def _recovered(by_seed: list[int | None]) -> str:
    known = sorted(tasks for tasks in by_seed if tasks is not None)
    if not known:
        return "never"
    span = f"{known[0]} to {known[-1]}" if known[0] < known[-1] else str(known[0])
    return span if len(known) == len(by_seed) else f"{span}, never in {len(by_seed) - len(known)}"


def _by_variant(
    study: Study,
    note: str,
    headers: list[str],
    rows: Sequence[tuple[str, list[str]]],
    text_columns: tuple[int, ...] = (0,),
) -> list[Block]:
    """A note and a table, unless it is empty; its first column names the variant, of several."""
    if not rows:
        return []
    if len(study.variants) < 2:
        return [Text(note), Table(headers, [cells for _, cells in rows], text_columns)]
    labelled = [[study.label(variant), *cells] for variant, cells in rows]
    shifted = (0, *(i + 1 for i in text_columns))
    return [Text(note), Table(["Variant", *headers], labelled, shifted)]


def _claims(study: Study, results: Results) -> list[Block]:
    note = (
        "A claim holds when the complete 95 % interval (for an order: the test of each scheduler "
        "against the next) agrees with it, does not hold when the complete interval disagrees, "
        "and is undecided otherwise."
    )
    rows = [(each.variant, [each.claim, each.measured, each.verdict]) for each in results.claims]
    return _by_variant(
        study, note, ["Claimed beforehand", "Measured", "Verdict"], rows, text_columns=(0, 1, 2)
    )


def _best(study: Study, results: Results) -> list[Block]:
    rows = []
    for each in results.variants:
        for column in RANKED:
            best, *others = each.ranked(column) or [""]
            test = each.test(column, others[0], best) if others else None
            if test is not None:
                measure, mean = MEASURES[column], each.schedulers[best][column]
                rows.append((each.variant, [
                    measure.name, best, with_interval(mean, measure.unit), test.first,
                    with_interval(test.ratio), p_value(test.p_adjusted),
                ]))  # fmt: skip
    note = (
        "The two schedulers with the least mean of each figure, the Oracle left out. p is that of "
        "the paired t test, after Holm over all pairs of schedulers; report.json has all pairs."
    )
    headers = ["Figure", "Least", "Mean", "Next", "Next / least", "p after Holm"]
    return _by_variant(study, note, headers, rows, text_columns=(0, 1, 3))


def _sweep(study: Study, results: Results) -> list[Block]:
    if not results.sweep:
        return []
    first, last = results.variants[0], results.variants[-1]
    rows = []
    for name in (name for name in first.schedulers if name in last.schedulers):
        tests = [results.sweep.get(column, {}).get(name) for column in SWEPT]
        before, after = (study.by_seed(v.variant, name, "gpu_share") for v in (first, last))
        change = estimate([after[seed] - before[seed] for seed in sorted(before.keys() & after)])
        ratios = [
            "–" if t is None else with_interval(t.ratio) + " *" * t.significant for t in tests
        ]
        rows.append([name, *ratios, with_interval(change)])
    note = (
        f"At {study.experiment.axis or 'value'} = {last.value:g} over {first.value:g}, paired by "
        "seed: ratios with 95 % intervals, and the difference of the share on GPUs. An asterisk: "
        "significant after Holm over all ratios of this table."
    )
    headers = [MEASURES[column].name for column in (*SWEPT, "gpu_share")]
    return [Text(note), Table(["Scheduler", *headers], rows)]


def _tests(study: Study, results: Results) -> list[Block]:
    rows = []
    for variant, test in results.tests:
        slower = "slower" if test.ratio.mean > 1 else "faster"
        verdict = f"{test.first} is {slower}" if test.significant else "not distinguished"
        rows.append((variant, [
            test.first, test.second, with_interval(test.ratio), p_value(test.p),
            p_value(test.p_adjusted), "–" if test.p is None else verdict,
        ]))  # fmt: skip
    n = len(study.seeds)
    note = (
        f"Paired t tests on the logarithm of the total time, n = {n} seeds (same seed, same "
        f"tasks), after Holm over {counted(len(rows), 'test')}; significant below 0.05."
        if n > 1
        else "One seed: these are its ratios; there is no test."
    )
    headers = ["First", "Second", "Time of first / second", "p", "p after Holm", "Verdict"]
    return _by_variant(study, note, headers, rows, text_columns=(0, 1, 5))


def _reference(study: Study, results: Results) -> list[Block]:
    reference = study.experiment.reference
    if reference is None:
        return []
    rows = [
        (variant, [
            row.scheduler, plus_minus(row.ours), number(row.theirs, 4),
            with_interval(row.ours_over_oracle), number(row.theirs_over_oracle),
            str(row.our_rank), str(row.their_rank),
        ])
        for variant, compared in results.references
        for row in compared.rows
    ]  # fmt: skip
    headers = ["Scheduler", "Ours (s)", "Reference (s)", "Ours × Oracle", "Reference × Oracle",
               "Our rank", "Reference rank"]  # fmt: skip
    texts = [_gpu_over_cpu(study, variant) for variant, _ in results.references]
    texts.append(" ".join(reference.notes.split()) if rows else "")
    blocks = _by_variant(study, f"Reference: {reference.source}.", headers, rows)
    return [*blocks, *(Text(text) for text in texts if text)]


def _gpu_over_cpu(study: Study, variant: str) -> str:
    """What sending a judged task to a GPU costs over the CPU: it explains most differences."""
    rows = study.select("workload", variant, judged=True)
    if len(rows["cpu_time"]) == 0 or not (rows["cpu_time"] > 0).all():
        return ""
    where = f"{study.label(variant)}: " if len(study.variants) > 1 else ""
    median = float(np.median(rows["gpu_time"] / rows["cpu_time"]))
    return f"{where}Median time of a judged task on a GPU over that on the CPU: {number(median)}."


def _models(study: Study) -> list[Block]:
    rows = []
    for variant in study.variants:
        models = study.select("models", variant)
        runs = max(len(study.seeds_of("outcomes", variant)), 1)
        for name in sorted(set(models["name"])):
            shipped = models["shipped"][models["name"] == name].astype(bool)
            counts = [number(float(kind.sum()) / runs) for kind in (shipped, ~shipped)]
            rows.append((variant, [name, *counts]))
    note = (
        "A new forest is shipped only when it is not worse than the current one on results that "
        "neither was trained on; the agent's networks are shipped as they learn. Unless the spec "
        "says otherwise, the first models of a run are trained on generated tasks before it."
    )
    return _by_variant(study, note, ["Learner", "Shipped per run", "Kept back per run"], rows)
