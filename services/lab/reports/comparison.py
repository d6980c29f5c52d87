"""The same experiment run twice or more: a report of what differs, in settings and in results."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import matplotlib

from services.lab.experiments.declaration import ExperimentError
from services.lab.experiments.tables import MEASURES
from services.lab.reports.columns import COLUMNS
from services.lab.reports.document import Block, Document, Figure, Section, Table, Text
from services.lab.reports.figures.comparison import Ratios, comparison
from services.lab.reports.figures.draw import DPI, save
from services.lab.reports.figures.style import RC, Palette
from services.lab.reports.formatting import counted, listed, number, p_value, with_interval
from services.lab.reports.methods import difference, specs_by_variant
from services.lab.reports.report import plain, write_document
from services.lab.reports.statistics import Estimate, PairedTest, corrected, paired_test, ratio
from services.lab.reports.study import Study, read

# Ratios that are shown beside that of the measure.
_OTHERS = ("avg_turnaround", "p95_turnaround", *list(MEASURES.values())[1:])

Setting = tuple[str, Any, Any]  # path, in A, in the other folder


@dataclass(frozen=True)
class Change:
    """One scheduler in one variant: a later folder over the first."""

    folder: str
    variant: str
    scheduler: str
    name: str  # of scheduler and variant, as shown
    failed: tuple[int, int]  # tasks, in A and here
    test: PairedTest  # of the measure that A is ranked by
    others: dict[str, Estimate | None]


def write_comparison(folders: list[Path], out: Path, *, dpi: int = DPI) -> list[Path]:
    """Compare each folder with the first: comparison.html, .pdf, .json and a figure in `out`."""
    if not 2 <= len(folders) <= len(ascii_uppercase):
        raise ExperimentError("give two folders of experiments or more, 26 at most")
    first, *later = studies = [read(folder) for folder in folders]
    names = dict(zip(ascii_uppercase, (folder.resolve().name for folder in folders), strict=False))
    others = dict(zip(ascii_uppercase[1:], later, strict=False))
    changes = _changes(first, others)
    settings = {letter: _settings(first, study) for letter, study in others.items()}
    summary = [line for letter, study in others.items()
               for line in _summary(letter, first, study, settings[letter], changes)]  # fmt: skip
    ratios: Ratios = {}
    for change in changes:
        row = (change.name, change.scheduler, change.test.ratio)
        ratios.setdefault(change.folder, []).append(row)
    measure = COLUMNS[first.ranked_by].name
    with matplotlib.rc_context(RC):
        drawings = [comparison(ratios, measure, Palette(first.schedulers()))] if ratios else []
        pictures = [save("comparison", each, out / "figures", dpi) for each in drawings]
    document = Document(
        f"Comparison: {first.experiment.title}",
        f"What changed between {listed([f'{key} ({name})' for key, name in names.items()])}?",
        f"{len(studies)} folders of results, compared by {measure.lower()}",
        summary,
        [
            Section("Settings that differ", [_compared(settings)]),
            Section("Differences", _differences(measure, changes)),
            Section("Figure", [Figure(picture, 1) for picture in pictures]),
        ],
    )
    rows = [plain(change) for change in changes]
    numbers = {
        "folders": names,
        "measure": first.experiment.measure,
        "settings": settings,
        "summary": summary,
        "changes": [{**row, **row.pop("test"), **row.pop("others")} for row in rows],
    }
    return write_document(document, numbers, pictures, out, "comparison")


def _settings(first: Study, other: Study) -> list[Setting]:
    """Fields of the declaration, the variants' specs and the provenance that differ."""
    return difference(_described(first), _described(other))


def _described(study: Study) -> dict[str, Any]:
    specs = specs_by_variant(study)
    provenance = ("version", "commit", "python", "machine", "packages", "arena")
    return {
        **(next(iter(specs.values())) if len(specs) == 1 else specs),
        **study.experiment.model_dump(include={"tasks", "judge_from", "baseline", "measure"}),
        "seeds": study.seeds,
        **{field: study.provenance.get(field) for field in provenance},
    }


def _changes(first: Study, others: dict[str, Study]) -> list[Change]:
    changes = [
        change
        for letter, study in others.items()
        for variant in first.variants
        for name in first.schedulers(variant)
        if (change := _change(letter, study, first, variant, name))
    ]
    tests = corrected([change.test for change in changes])
    return [replace(change, test=test) for change, test in zip(changes, tests, strict=True)]


def _change(letter: str, study: Study, first: Study, variant: str, name: str) -> Change | None:
    both = (study, first)
    values = (each.by_seed(variant, name, first.ranked_by) for each in both)
    if (test := paired_test((letter, "A"), *values)) is None:
        return None
    others = {c: ratio(*(each.by_seed(variant, name, c) for each in both)) for c in _OTHERS}
    after, before = (sum(row["failed"] or 0 for row in each.rows(variant, name)) for each in both)
    shown = f"{name} ({first.label(variant)})" if len(first.variants) > 1 else name
    return Change(letter, variant, name, shown, (before, after), test, others)


def _summary(
    letter: str, first: Study, other: Study, settings: list[Setting], changes: list[Change]
) -> list[str]:
    lines = [f"{letter} has the same settings, version and machine as A."]
    if settings:
        lines = [f"{letter} differs from A in {counted(len(settings), 'setting')}, listed below."]
    ours, theirs = first.experiment.judged, other.experiment.judged
    if ours != theirs:
        lines.append(
            f"{letter} judges {theirs:,} tasks, A {ours:,}: sums and makespans differ for that "
            "reason alone."
        )
    own = [change for change in changes if change.folder == letter]
    if not own:
        return [*lines, f"{letter} and A share no seed of a scheduler: nothing can be compared."]
    if all(change.test.p is None for change in own):
        return [*lines, f"{letter} and A share one seed only: there are ratios, but no tests."]
    groups: dict[str, list[str]] = {}
    for change in own:
        ratio, verdict = "", change.test.verdict
        if change.test.significant:
            verdict, ratio = "changed", f" {with_interval(change.test.ratio)} times"
        groups.setdefault(verdict, []).append(change.name + ratio)
    parts = [f"{group}: {listed(names)}" for group, names in sorted(groups.items())]
    return [*lines, f"{COLUMNS[first.ranked_by].name} of {letter} over A, {'; '.join(parts)}."]


def _compared(settings: dict[str, list[Setting]]) -> Block:
    rows = [
        [letter, path, _short(old), _short(new)]
        for letter, own in settings.items()
        for path, old, new in own
    ]
    if not rows:
        return Text("No setting differs.")
    return Table(["", "Setting", "In A", "In the other"], rows, (0, 1, 2, 3))


def _differences(measure: str, changes: list[Change]) -> list[Block]:
    if not changes:
        return []
    note = (
        "Every figure is the later folder's over that of A, paired by seed (geometric mean): below "
        f"1 is less than in A. Tests are paired t tests on the logarithm of the {measure.lower()}, "
        "after Holm over all distinct ones. Failed: tasks in A and in the later folder. Seeds that "
        "only one folder has are left out."
    )
    headers = ["", "Scheduler", "Failed", f"{measure} over A's", "p after Holm",
               *(COLUMNS[column].name for column in _OTHERS)]  # fmt: skip
    rows = [
        [
            change.folder, change.name, "{:,} → {:,}".format(*change.failed),
            with_interval(change.test.ratio), p_value(change.test.p_adjusted),
            *(number(value.mean if value else None) for value in change.others.values()),
        ]
        for change in changes
    ]  # fmt: skip
    return [Text(note), Table(headers, rows, (0, 1))]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"
