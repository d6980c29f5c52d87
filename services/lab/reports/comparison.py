"""The same experiment run twice or more: a report of what differs, in settings and in results."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import matplotlib

from services.lab.experiments.declaration import ExperimentError
from services.lab.reports.document import Block, Document, Figure, Section, Table, Text
from services.lab.reports.figures.axes import Drawing, panels, ratio_rows
from services.lab.reports.figures.draw import DPI, Picture, save
from services.lab.reports.figures.style import RC, Palette
from services.lab.reports.formatting import listed, number, p_value, with_interval
from services.lab.reports.html import write_html
from services.lab.reports.methods import difference, specs_by_variant
from services.lab.reports.pdf import write_pdf
from services.lab.reports.report import write_json
from services.lab.reports.results import MEASURES
from services.lab.reports.statistics import Estimate, PairedTest, corrected, paired_test, ratio
from services.lab.reports.study import Study, read

# Ratios that are shown beside that of the total time.
OTHERS = ("makespan", "total_energy", "p95_turnaround")

Setting = tuple[str, Any, Any]  # path, in A, in the other folder


@dataclass(frozen=True)
class Change:
    """One scheduler in one variant: a later folder over the first."""

    letter: str
    variant: str
    scheduler: str
    name: str  # of scheduler and variant, as shown
    test: PairedTest  # total time
    others: dict[str, Estimate | None]


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
    document = _document(studies, names, settings, changes, summary, pictures)
    numbers = {
        "folders": names,
        "settings": settings,
        "summary": summary,
        "changes": [
            {
                "folder": change.letter,
                "variant": change.variant,
                "scheduler": change.scheduler,
                **change.test.to_json(),
                **{figure: value and asdict(value) for figure, value in change.others.items()},
            }
            for change in changes
        ],
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
        fields = ("name", "tasks", "judge_from", "baseline")
        return {field: getattr(study.experiment, field) for field in fields}

    differing = difference({**declared(first), "seeds": first.seeds},
                           {**declared(other), "seeds": other.seeds})  # fmt: skip
    ours, theirs = specs_by_variant(first), specs_by_variant(other)
    for variant in [*ours, *(name for name in theirs if name not in ours)]:
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


def _changes(studies: dict[str, Study]) -> list[Change]:
    first = studies["A"]
    changes: list[Change] = []
    for letter, study in list(studies.items())[1:]:
        for variant in first.variants:
            several = len(first.variants) > 1 and first.label(variant)
            for name in first.schedulers(variant):
                pairs = {
                    column: [each.by_seed(variant, name, column) for each in (study, first)]
                    for column in ("total_time", *OTHERS)
                }
                test = paired_test((letter, "A"), *pairs["total_time"])
                if test is not None:
                    shown = f"{name} ({several})" if several else name
                    ratios = {column: ratio(*pairs[column]) for column in OTHERS}
                    changes.append(Change(letter, variant, name, shown, test, ratios))
    tests = corrected([change.test for change in changes])
    return [replace(change, test=test) for change, test in zip(changes, tests, strict=True)]


def _summary(
    letter: str, studies: dict[str, Study], settings: list[Setting], changes: list[Change]
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
    own = [change for change in changes if change.letter == letter]
    if not own:
        return [*lines, f"{letter} and A share no seed of a scheduler: nothing can be compared."]
    if all(change.test.p is None for change in own):
        return [*lines, f"{letter} and A share one seed only: there are ratios, but no tests."]
    groups: dict[str, list[str]] = {"changed": [], "not distinguished": [], "identical": []}
    for change in own:
        if change.test.identical:
            groups["identical"].append(change.name)
        elif change.test.significant:
            groups["changed"].append(f"{change.name} {with_interval(change.test.ratio)} times")
        else:
            groups["not distinguished"].append(change.name)
    parts = [f"{group}: {listed(names)}" for group, names in groups.items() if names]
    return [*lines, f"Total time of {letter} over A, {'; '.join(parts)}."]


def _document(
    studies: dict[str, Study],
    names: dict[str, str],
    settings: dict[str, list[Setting]],
    changes: list[Change],
    summary: list[str],
    pictures: list[Picture],
) -> Document:
    folders = [
        [
            letter, names[letter], study.experiment.name, f"{study.experiment.tasks:,}",
            listed(study.seeds), str(study.provenance.get("version")),
            str(study.provenance.get("commit") or "–")[:10],
            str(study.provenance.get("finished_at") or "–")[:10],
        ]
        for letter, study in studies.items()
    ]  # fmt: skip
    differing = [
        [letter, path, _short(old), _short(new)]
        for letter, own in settings.items()
        for path, old, new in own
    ]
    rows = [
        [
            change.letter, change.name, with_interval(change.test.ratio), p_value(change.test.p),
            p_value(change.test.p_adjusted),
            *(number(value.mean if value else None) for value in change.others.values()),
        ]
        for change in changes
    ]  # fmt: skip
    note = (
        "Every figure is the later folder's over that of A, paired by seed (geometric mean): below "
        "1 is less than in A. Tests are paired t tests on the logarithm of the total time, after "
        f"Holm over {len(rows)} tests. Seeds that only one folder has are left out; few seeds may "
        "hide small differences."
    )
    headers = ["", "Scheduler", "Total time over A's", "p", "p after Holm",
               *(MEASURES[column].name for column in OTHERS)]  # fmt: skip
    compared = ["", "Folder", "Experiment", "Tasks", "Seeds", "Version", "Commit", "Finished"]
    blocks: list[Block] = [
        Table(compared, folders, (0, 1, 2, 4, 5, 6, 7)),
        Table(["", "Setting", "In A", "In the other"], differing, (0, 1, 2, 3))
        if differing
        else Text("No setting differs."),
    ]
    return Document(
        f"Comparison: {studies['A'].experiment.title}",
        f"What changed between {listed([f'{key} ({name})' for key, name in names.items()])}?",
        f"{len(studies)} folders of results",
        summary,
        [
            Section("What was compared", blocks),
            Section("Differences", [Text(note), Table(headers, rows, (0, 1))] if rows else []),
            Section("Figure", [Figure(picture, 1) for picture in pictures]),
        ],
    )


def _draw(first: Study, changes: list[Change], folder: Path, dpi: int) -> list[Picture]:
    """Ratios to A with their intervals, a panel for each folder."""
    letters = sorted({change.letter for change in changes})
    if not letters:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(dict.fromkeys(change.name for change in changes))
    palette = Palette(first.schedulers())
    with matplotlib.rc_context(RC):
        figure, axes = panels(len(letters), 0.6 + 0.19 * len(rows), share_y=True)
        for panel, letter in zip(axes, letters, strict=True):
            own = [change for change in changes if change.letter == letter]
            points = [(rows.index(each.name), each.scheduler, each.test.ratio) for each in own]
            ratio_rows(panel, palette, rows, points)
            panel.set_xlabel(f"Total time in {letter} over A (log scale)")
        note = "Left of 1: faster than in A. Whiskers: 95 % confidence interval over shared seeds."
        return [save("comparison", Drawing(figure, "Total time over that of A", note), folder, dpi)]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"
