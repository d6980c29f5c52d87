"""Puts a report together: what was found first, then how it was found and where."""

from __future__ import annotations

from services.lab.report.data import Study
from services.lab.report.document import (
    Block,
    Bullets,
    Document,
    Figure,
    Heading,
    Section,
    Table,
    Text,
)
from services.lab.report.figures import Picture
from services.lab.report.findings import Contest, Findings
from services.lab.report.methods import methods, provenance
from services.lab.report.reference import beside, gpu_over_cpu
from services.lab.report.text import GENERAL, Sentence
from services.lab.report.wording import (
    chance,
    counted,
    listed,
    multiple,
    number,
    plus_minus,
    quantity,
)

# Figures that have a section of their own; all others stand together.
_APART = ("reference", "models", "workload", "graph")


def compose(
    study: Study,
    findings: Findings,
    seen: list[Sentence],
    summary: list[str],
    pictures: list[Picture],
) -> Document:
    numbered = _numbered(pictures)
    experiment = study.experiment
    sections = []
    if experiment.explanation.strip():
        paragraphs = experiment.explanation.strip().split("\n\n")
        sections.append(Section("Background", [Text(" ".join(p.split())) for p in paragraphs]))
    sections += [
        Section("Outcomes", _outcomes(study, findings)),
        Section("Claims", _claims(study, findings)),
        Section("What is seen", _seen(findings, seen)),
        Section("Figures", [figure for name, figure in numbered.items() if name not in _APART]),
        Section("Tests between schedulers", _tests(study, findings)),
        Section("Beside the reference", _reference(study, findings, numbered)),
        Section("Models", _models(study, numbered)),
        Section("Workload", [f for n, f in numbered.items() if n in ("workload", "graph")]),
        Section("Methods", methods(study)),
        Section("Provenance", provenance(study)),
    ]
    given = study.provenance
    byline = (
        f"Experiment {experiment.name} · {counted(len(study.seeds), 'seed')} · "
        f"{counted(experiment.tasks, 'task')} a run, {experiment.tasks - experiment.judge_from:,} "
        f"judged · version {given.get('version', '–')} · {str(given.get('finished_at', ''))[:10]}"
    )
    return Document(
        experiment.title,
        " ".join(experiment.question.split()),
        byline,
        summary,
        [section for section in sections if section.blocks],
    )


def _numbered(pictures: list[Picture]) -> dict[str, Figure]:
    """Numbers in the order in which they are met."""
    order = sorted(
        pictures, key=lambda p: _APART.index(p.name) + 1 if p.name in _APART else 0
    )  # fmt: skip
    return {picture.name: Figure(picture, i) for i, picture in enumerate(order, start=1)}


def _outcomes(study: Study, findings: Findings) -> list[Block]:
    blocks: list[Block] = []
    many = len(findings.contests) > 1
    for contest in findings.contests:
        if many:
            blocks.append(Heading(contest.label or contest.variant))
        blocks.append(_outcome_table(contest))
    n = len(study.seeds)
    spread = (
        "One seed, so no intervals."
        if n == 1
        else f"Means over {n} seeds ± half the width of their 95 % confidence interval."
    )
    blocks.append(
        Text(
            f"{spread} × Oracle: total execution time over the Oracle's, paired by seed. Makespan "
            "× bound: makespan over the cluster bound, which no schedule can beat. p95: the "
            "turnaround that 95 % of the tasks stay within."
        )
    )
    return blocks


def _outcome_table(contest: Contest) -> Table:
    failed = any(result.failed for result in contest.results.values())
    headers = ["Scheduler", "Total time (s)", "Time per task (s)", "× Oracle", "Makespan × bound",
               "Energy (J)", "Cost ($)", "p95 turnaround (s)",
               *(["Failed"] if failed else [])]  # fmt: skip
    rows = [
        [
            name,
            plus_minus(result["total_time"]),
            plus_minus(result["avg_time"]),
            multiple(result.over_oracle),
            multiple(result.over_bound),
            plus_minus(result["total_energy"]),
            plus_minus(result["total_cost"]),
            plus_minus(result["p95_turnaround"]),
            *([f"{result.failed:,}"] if failed else []),
        ]
        for name, result in contest.results.items()
    ]
    return Table(headers, rows, widths=_by_content(headers, rows))


def _by_content(headers: list[str], rows: list[list[str]]) -> tuple[float, ...]:
    """Every cell on one line where the page has room; headers may break between words."""
    bold = 1.25  # times as wide
    words = [bold * max(map(len, header.split())) for header in headers]
    cells = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return tuple(2.0 + max(pair) for pair in zip(words, cells, strict=True))


def _claims(study: Study, findings: Findings) -> list[Block]:
    if not findings.claims:
        return []
    many = len(findings.contests) > 1
    rows = [
        [*([study.label(each.variant)] if many else []), each.claim, each.found, each.verdict]
        for each in findings.claims
    ]
    headers = [*(["Variant"] if many else []), "Claimed beforehand", "Found", "Verdict"]
    note = (
        "A claim holds when the whole 95 % interval (for an order, the test of each scheduler "
        "against the next) agrees with it, and does not when all of it disagrees; otherwise it "
        "cannot be said."
    )
    widths = (*([1.0] if many else []), 3.0, 3.0, 1.0)
    return [Text(note), Table(headers, rows, text_columns=(0, 1, 2, 3), widths=widths)]


def _seen(findings: Findings, seen: list[Sentence]) -> list[Block]:
    """What concerns the whole experiment, then by variant; what several variants share, once.
    The claims have a table of their own."""
    seen = [sentence for sentence in seen if sentence.topic != "claim"]
    if len(findings.contests) == 1:
        return [Bullets([sentence.text for sentence in seen])] if seen else []
    blocks: list[Block] = []
    general = [sentence.text for sentence in seen if sentence.topic in GENERAL]
    if general:
        blocks.append(Bullets(general))
    where: dict[str, list[str]] = {}
    for sentence in seen:
        if sentence.topic not in GENERAL:
            where.setdefault(sentence.text, []).append(sentence.variant)
    together: dict[tuple[str, ...], list[str]] = {}
    for text, places in where.items():
        together.setdefault(tuple(places), []).append(text)
    labels = {contest.variant: contest.label or contest.variant for contest in findings.contests}
    for variants in sorted(together, key=len, reverse=True):
        everywhere = len(variants) == len(findings.contests)
        title = "All variants" if everywhere else listed([labels[name] for name in variants])
        blocks += [Heading(title), Bullets(together[variants])]
    return blocks


def _tests(study: Study, findings: Findings) -> list[Block]:
    if not findings.tests:
        return []
    many = len(findings.contests) > 1
    rows = []
    for variant, test in findings.tests:
        verdict = "–"
        if test.p is not None:
            slower = "slower" if test.ratio.mean > 1 else "faster"
            verdict = f"{test.first} is {slower}" if test.significant else "not told apart"
        rows.append([
            *([study.label(variant)] if many else []),
            test.first, test.second, quantity(test.ratio), chance(test.p),
            chance(test.p_adjusted), verdict,
        ])  # fmt: skip
    first = 1 if many else 0
    headers = [*(["Variant"] if many else []), "First", "Second",
               "Time of first / second [95 % CI]", "p", "p after Holm", "Verdict"]  # fmt: skip
    n = len(study.seeds)
    note = (
        f"Paired t tests on the logarithm of the total time, n = {n} seeds (same seed, same "
        f"tasks), corrected after Holm over {counted(len(rows), 'test')}; below 0.05 counts as "
        f"told apart. {n} seeds are few: the test assumes that log ratios vary normally between "
        "seeds, and a small difference may go unseen."
    )
    if n == 1:
        note = "One seed: the ratios are what it gave; there is no test."
        kept = [*range(first), first, first + 1, first + 2]
        rows = [[row[i] for i in kept] for row in rows]
        headers = [headers[i].removesuffix(" [95 % CI]") for i in kept]
        return [Text(note), Table(headers, rows, text_columns=tuple(range(first + 2)))]
    text_columns = (*range(first), first, first + 1, first + 5)
    widths = (*([1.2] if many else []), 1.1, 1.1, 1.8, 0.8, 0.9, 1.6)
    return [Text(note), Table(headers, rows, text_columns=text_columns, widths=widths)]


def _reference(study: Study, findings: Findings, numbered: dict[str, Figure]) -> list[Block]:
    given = study.experiment.reference
    if given is None or not findings.references:
        return []
    blocks: list[Block] = [Text(f"Reference: {given.source}.")]
    for variant, compared in findings.references:
        if len(findings.references) > 1:
            blocks.append(Heading(study.label(variant)))
        rows = [
            [
                row.scheduler,
                plus_minus(row.ours),
                number(row.theirs, 4),
                multiple(row.ours_over_oracle),
                "–" if row.theirs_over_oracle is None else f"{number(row.theirs_over_oracle)} ×",
                str(row.our_rank),
                str(row.their_rank),
            ]
            for row in compared.rows
        ]
        headers = ["Scheduler", "Ours (s)", "Reference (s)", "Ours × Oracle",
                   "Reference × Oracle", "Our rank", "Reference rank"]  # fmt: skip
        blocks += [Table(headers, rows), *map(Text, beside(compared))]
        blocks += map(Text, gpu_over_cpu(study, variant))
    if given.notes.strip():
        blocks.append(Text(" ".join(given.notes.split())))
    if "reference" in numbered:
        blocks.append(numbered["reference"])
    return blocks


def _models(study: Study, numbered: dict[str, Figure]) -> list[Block]:
    rows = []
    for variant in study.variants:
        found = study.select("models", variant)
        runs = max(len(study.seeds_of("outcomes", variant)), 1)
        for name in sorted({str(name) for name in found["name"]}):
            keep = found["name"] == name
            shipped = sum(bool(value) for value in found["shipped"][keep])
            rows.append([
                *([study.label(variant)] if len(study.variants) > 1 else []), name,
                number(shipped / runs), number((int(keep.sum()) - shipped) / runs),
            ])  # fmt: skip
    if not rows:
        return []
    headers = ["Learner", "Shipped per run", "Kept back per run"]
    many = len(study.variants) > 1
    table = Table([*(["Variant"] if many else []), *headers], rows,
                  text_columns=(0, 1) if many else (0,))  # fmt: skip
    text = Text(
        "A fresh forest ships only when it is not worse than the one in service on results that "
        "neither has seen; the agent's networks ship as they learn. The first models of a run are "
        "trained on generated tasks before it begins, unless its spec says otherwise."
    )
    return [text, table, *([numbered["models"]] if "models" in numbered else [])]
