"""The same experiment run twice or more: a report of what differs, in settings and in results."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import matplotlib

from services.lab.experiments.declaration import ExperimentError
from services.lab.reports.document import Block, Document, Figure, Section, Table, Text
from services.lab.reports.figures.comparison import Ratios, comparison
from services.lab.reports.figures.draw import DPI, Picture, save
from services.lab.reports.figures.style import RC, Palette
from services.lab.reports.formatting import listed, number, p_value, with_interval
from services.lab.reports.html import write_html
from services.lab.reports.methods import difference, specs_by_variant
from services.lab.reports.pdf import write_pdf
from services.lab.reports.report import plain, write_json
from services.lab.reports.results import MEASURES
from services.lab.reports.statistics import Estimate, PairedTest, corrected, paired_test, ratio
from services.lab.reports.study import Study, read

# Ratios that are shown beside that of the total time.
OTHERS = ("avg_turnaround", "p95_turnaround", "makespan", "total_energy")

Studies = dict[str, Study]  # by letter, A first
Setting = tuple[str, Any, Any]  # path, in A, in the other folder


@dataclass(frozen=True)
class Change:
    """One scheduler in one variant: a later folder over the first."""

    folder: str
    variant: str
    scheduler: str
    name: str  # of scheduler and variant, as shown
    failed: tuple[int, int]  # tasks, in A and here
    test: PairedTest  # total time
    others: dict[str, Estimate | None]

    @property
    def shown(self) -> str:
        failed = " ({:,} → {:,} failed)".format(*self.failed) if any(self.failed) else ""
        return self.name + failed


def write_comparison(folders: list[Path], out: Path, *, dpi: int = DPI) -> list[Path]:
    """Compare each folder with the first: comparison.html, .pdf, .json and a figure in `out`."""
    if not 2 <= len(folders) <= len(ascii_uppercase):
        raise ExperimentError("give two folders of experiments or more, 26 at most")
    studies = dict(zip(ascii_uppercase, map(read, folders), strict=False))
    names = dict(zip(studies, (folder.resolve().name for folder in folders), strict=True))
    out.mkdir(parents=True, exist_ok=True)
    changes = _changes(studies)
    settings = {letter: _settings(studies["A"], study) for letter, study in studies.items()}
    summary = [
        line
        for letter in list(studies)[1:]
        for line in _summary(letter, studies, settings[letter], changes)
    ]
    pictures = _draw(studies["A"], changes, out / "figures", dpi)
    document = Document(
        f"Comparison: {studies['A'].experiment.title}",
        f"What changed between {listed([f'{key} ({name})' for key, name in names.items()])}?",
        f"{len(studies)} folders of results",
        summary,
        [
            Section("Settings that differ", [_compared(settings)]),
            Section("Differences", _differences(changes)),
            Section("Figure", [Figure(picture, 1) for picture in pictures]),
        ],
    )
    rows = [plain(change) for change in changes]
    numbers = {
        "folders": names,
        "settings": settings,
        "summary": summary,
        "changes": [{**row, **row.pop("test"), **row.pop("others")} for row in rows],
    }
    return [
        write_html(document, out / "comparison.html"),
        write_pdf(document, out / "comparison.pdf"),
        write_json(numbers, out / "comparison.json"),
        *(file for picture in pictures for file in (picture.png, picture.svg)),
    ]


def _settings(first: Study, other: Study) -> list[Setting]:
    """Fields of the declaration, the variants' specs and the provenance that differ."""

    def declared(study: Study) -> dict[str, Any]:
        fields = study.experiment.model_dump(include={"name", "tasks", "judge_from", "baseline"})
        return {**fields, "seeds": study.seeds}

    differing = difference(declared(first), declared(other))
    ours, theirs = specs_by_variant(first), specs_by_variant(other)
    for variant in dict.fromkeys([*ours, *theirs]):
        if variant not in ours or variant not in theirs:
            differing.append((f"variant {variant!r}", variant in ours, variant in theirs))
            continue
        prefix = f"{variant}: " if len(ours) > 1 else ""
        changed = difference(ours[variant], theirs[variant])
        # The number of tasks is among the declared fields.
        differing += [(prefix + path, old, new) for path, old, new in changed if path != "tasks"]
    for field in ("version", "commit", "python", "machine", "packages", "arena"):
        differing += difference(first.provenance.get(field), other.provenance.get(field), field)
    return differing


def _changes(studies: Studies) -> list[Change]:
    first = studies["A"]
    changes = [
        change
        for letter, study in list(studies.items())[1:]
        for variant in first.variants
        for name in first.schedulers(variant)
        if (change := _change(letter, study, first, variant, name))
    ]
    tests = corrected([change.test for change in changes])
    return [replace(change, test=test) for change, test in zip(changes, tests, strict=True)]


def _change(letter: str, study: Study, first: Study, variant: str, name: str) -> Change | None:
    both = (study, first)
    test = paired_test((letter, "A"), *(each.by_seed(variant, name, "total_time") for each in both))
    if test is None:
        return None
    others = {c: ratio(*(each.by_seed(variant, name, c) for each in both)) for c in OTHERS}
    here, before = (sum(row["failed"] or 0 for row in each.rows(variant, name)) for each in both)
    shown = f"{name} ({first.label(variant)})" if len(first.variants) > 1 else name
    return Change(letter, variant, name, shown, (before, here), test, others)


def _summary(
    letter: str, studies: Studies, settings: list[Setting], changes: list[Change]
) -> list[str]:
    lines = [f"{letter} has the same settings, version and machine as A."]
    if settings:
        shown = [f"{path} ({_short(old)} → {_short(new)})" for path, old, new in settings[:4]]
        more = f" and {len(settings) - 4} more" if len(settings) > 4 else ""
        lines = [f"{letter} differs from A in {'; '.join(shown)}{more}."]
    ours, theirs = (studies[each].experiment.judged for each in ("A", letter))
    if ours != theirs:
        lines.append(
            f"{letter} judges {theirs:,} tasks, A {ours:,}: "
            "total times, energies and makespans differ for that reason alone."
        )
    own = [change for change in changes if change.folder == letter]
    if not own:
        return [*lines, f"{letter} and A share no seed of a scheduler: nothing can be compared."]
    if all(change.test.p is None for change in own):
        return [*lines, f"{letter} and A share one seed only: there are ratios, but no tests."]
    groups: dict[str, list[str]] = {"changed": [], "not distinguished": [], "identical": []}
    for change in own:
        if change.test.identical:
            groups["identical"].append(change.shown)
        elif change.test.significant:
            groups["changed"].append(f"{change.shown} {with_interval(change.test.ratio)} times")
        else:
            groups["not distinguished"].append(change.shown)
    parts = [f"{group}: {listed(names)}" for group, names in groups.items() if names]
    return [*lines, f"Total time of {letter} over A, {'; '.join(parts)}."]


def _compared(settings: dict[str, list[Setting]]) -> Block:
    rows = [
        [letter, path, _short(old), _short(new)]
        for letter, own in settings.items()
        for path, old, new in own
    ]
    if not rows:
        return Text("No setting differs.")
    return Table(["", "Setting", "In A", "In the other"], rows, (0, 1, 2, 3))


def _differences(changes: list[Change]) -> list[Block]:
    if not changes:
        return []
    note = (
        "Every figure is the later folder's over that of A, paired by seed (geometric mean): below "
        "1 is less than in A. Tests are paired t tests on the logarithm of the total time, after "
        f"Holm over {len(changes)} tests. Failed: tasks in A and in the later folder. Seeds that "
        "only one folder has are left out; few seeds may hide small differences."
    )
    headers = ["", "Scheduler", "Failed", "Total time over A's", "p", "p after Holm",
               *(MEASURES[column].name for column in OTHERS)]  # fmt: skip
    rows = [
        [
            change.folder, change.name, "{:,} → {:,}".format(*change.failed),
            with_interval(change.test.ratio), p_value(change.test.p),
            p_value(change.test.p_adjusted),
            *(number(value.mean if value else None) for value in change.others.values()),
        ]
        for change in changes
    ]  # fmt: skip
    return [Text(note), Table(headers, rows, (0, 1))]


def _draw(first: Study, changes: list[Change], folder: Path, dpi: int) -> list[Picture]:
    ratios: Ratios = {}
    for change in changes:
        row = (change.name, change.scheduler, change.test.ratio)
        ratios.setdefault(change.folder, []).append(row)
    with matplotlib.rc_context(RC):
        drawings = [comparison(ratios, Palette(first.schedulers()))] if ratios else []
        return [save("comparison", drawing, folder, dpi) for drawing in drawings]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"
