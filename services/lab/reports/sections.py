"""The sections of a report: tables and figures first, then methods and provenance."""

from __future__ import annotations

from services.lab.reports.columns import COLUMNS
from services.lab.reports.document import Block, Document, Figure, Section, Table, Text
from services.lab.reports.figures.draw import Picture
from services.lab.reports.formatting import (
    counted,
    labelled,
    listed,
    number,
    p_value,
    plus_minus,
    with_interval,
)
from services.lab.reports.methods import methods, provenance
from services.lab.reports.results import SWEPT, Results, VariantResults
from services.lab.reports.statistics import estimate
from services.lab.reports.study import Study
from services.lab.reports.summary import CHARGED
from shared.domain.schedulers import AGENT, ORACLE

# Three tables, each as wide as a page; a figure that no scheduler has is left out.
_OUTCOMES = (
    ("avg_turnaround", "p95_turnaround", "p99_turnaround", "over_clairvoyant", "avg_slowdown"),
    ("avg_wait", "total_time", "over_oracle", "regret", "gpu_share"),
    ("makespan", "over_bound", "over_critical_path", "total_energy", "energy_with_idle",
     "total_cost"),
)  # fmt: skip

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
        Section("From one end of the sweep to the other", _sweep(study, results)),
        Section("Figures", own(*(name for name in figures if name not in order))),
        Section("Tests between schedulers", _tests(study, results)),
        Section("Beside the reference", [*_reference(study, results), *own("reference")]),
        Section("Models", own("models")),
        Section("Workload", own("workload", "graph")),
        Section("Methods", methods(study)),
        Section("Provenance", provenance(study)),
    ]
    byline = (
        f"Experiment {experiment.name} · ranked by {_measure(results)} · "
        f"{counted(len(study.seeds), 'seed')} · {counted(experiment.tasks, 'task')} a run, "
        f"{experiment.judged:,} judged · version {facts.get('version', '–')} · "
        f"{str(facts.get('finished_at', ''))[:10]}"
    )
    question = " ".join(experiment.question.split())
    return Document(experiment.title, question, byline, summary, sections)


def _measure(results: Results) -> str:
    return COLUMNS[results.ranked_by].name.lower()


def _outcomes(study: Study, results: Results) -> list[Block]:
    recovers = "recovery" in study.experiment.figures and ORACLE in study.schedulers()
    blocks: list[Block] = []
    for each in results.variants:
        if len(results.variants) > 1:
            blocks.append(Text(each.label, "heading"))
        tables = {columns: _outcome_table(each, columns) for columns in _OUTCOMES}
        if recovers:
            times = tables[_OUTCOMES[1]]
            times.headers.append("Recovered after")
            for row, result in zip(times.rows, each.schedulers.values(), strict=True):
                row.append(_recovered(result.recovered_after))
        order = sorted(tables, key=lambda columns: results.ranked_by not in columns)
        blocks += [tables[columns] for columns in (order[:2] if study.is_sweep else order)]
    return [Text(_outcome_note(study, results)), *blocks]


def _outcome_note(study: Study, results: Results) -> str:
    note = f"Schedulers are listed by {_measure(results)}, references last. "
    if study.is_sweep:
        note += "The other figures stand in the figure over the sweep and in report.json. "
    note += (
        f"Means over {len(study.seeds)} seeds ± half the width of their 95 % confidence "
        "interval; ratios are paired by seed, with the interval in brackets. "
        if len(study.seeds) > 1
        else "One seed, so no intervals. "
    )
    if AGENT in study.schedulers() and (weight := study.first_spec.learning.energy_weight):
        note += f"{AGENT} is trained for time and energy (energy_weight {weight:g}): judge both. "
    return f"{note}{CHARGED} Methods says what the columns are."


def _outcome_table(each: VariantResults, columns: tuple[str, ...]) -> Table:
    results = each.schedulers.values()
    shown = [column for column in columns if any(result[column] for result in results)]
    if all(result.mean("energy_with_idle") == result.mean("total_energy") for result in results):
        shown = [column for column in shown if column != "energy_with_idle"]
    rows = [
        [
            labelled(name),
            f"{result.failed:,}",
            *((with_interval if COLUMNS[column].is_ratio else plus_minus)(result[column])
              for column in shown),
        ]
        for name, result in each.schedulers.items()
    ]  # fmt: skip
    return Table(["Scheduler", "Failed", *(COLUMNS[column].header for column in shown)], rows)


def _recovered(by_seed: list[int | None]) -> str:
    known = sorted(tasks for tasks in by_seed if tasks is not None)
    if not known:
        return "never"
    span = f"{known[0]} to {known[-1]}" if known[0] < known[-1] else str(known[0])
    return span if len(known) == len(by_seed) else f"{span}, never in {len(by_seed) - len(known)}"


def _by_variant(
    note: str,
    headers: list[str],
    rows: list[tuple[VariantResults, list[str]]],
    text_columns: tuple[int, ...] = (0,),
) -> list[Block]:
    """A note and a table, unless it is empty; its first column names the variant, of several."""
    if not rows:
        return []
    if len({each.variant for each, _ in rows}) < 2:
        return [Text(note), Table(headers, [cells for _, cells in rows], text_columns)]
    labelled = [[each.label, *cells] for each, cells in rows]
    return [
        Text(note),
        Table(["Variant", *headers], labelled, (0, *(i + 1 for i in text_columns))),
    ]


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
        rows.append([last.shown(name), *ratios, with_interval(change)])
    note = (
        f"At {study.experiment.axis or 'value'} = {last.value:g} over {first.value:g}, paired by "
        "seed: ratios with 95 % intervals, and the difference of the share on accelerators. An "
        "asterisk: significant after Holm over all distinct ratios of this table."
    )
    headers = [COLUMNS[column].name for column in (*SWEPT, "gpu_share")]
    return [Text(note), Table(["Scheduler", *headers], rows)]


def _tests(study: Study, results: Results) -> list[Block]:
    rows = [
        (each, [
            each.shown(test.first), each.shown(test.second), with_interval(test.ratio),
            p_value(test.p_adjusted), test.verdict,
        ])
        for each in results.variants
        for test in each.asked
    ]  # fmt: skip
    n = len(study.seeds)
    note = (
        f"Paired t tests on the logarithm of the {_measure(results)}, n = {n} seeds (same seed, "
        "same tasks), after Holm over the distinct tests shown here of a variant; significant "
        "below 0.05. report.json has all pairs, by every measure, corrected over them all."
        if n > 1
        else "One seed: these are its ratios; there is no test."
    )
    ratio = f"{COLUMNS[results.ranked_by].name} of first / second"
    return _by_variant(note, ["First", "Second", ratio, "p after Holm", "Verdict"], rows, (0, 1, 4))


def _reference(study: Study, results: Results) -> list[Block]:
    reference = study.experiment.reference
    rows = [
        (each, [
            each.shown(name), plus_minus(row.ours), number(row.theirs, 4),
            with_interval(row.ours_over_oracle), number(row.theirs_over_oracle),
            str(row.our_rank), str(row.their_rank),
        ])
        for each in results.variants
        for name, row in each.reference.items()
    ]  # fmt: skip
    if reference is None or not rows:
        return []
    headers = ["Scheduler", "Ours (s)", "Reference (s)", "Ours × Oracle", "Reference × Oracle",
               "Our rank", "Reference rank"]  # fmt: skip
    note = " ".join(f"Reference: {reference.source}. {reference.notes}".split())
    absent = set(reference.total_time) - {
        name for each in results.variants for name in each.reference
    }
    if absent:
        note += f" Not in these runs: {listed(sorted(absent))}."
    return _by_variant(note, headers, rows)
