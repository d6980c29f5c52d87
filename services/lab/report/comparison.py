"""The same experiment run twice or more, as a report of what differs."""

from __future__ import annotations

import json
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import matplotlib

from services.lab.experiment import ExperimentError
from services.lab.report.changes import (
    ALSO,
    Change,
    changes_since,
    said_of_changes,
    said_of_settings,
    settings_that_differ,
    short,
    who,
)
from services.lab.report.data import Study, read
from services.lab.report.document import Block, Bullets, Document, Figure, Section, Table, Text
from services.lab.report.figures import DPI, Picture, save
from services.lab.report.figures.canvas import Drawing, log_axis, panels, tick, whiskers
from services.lab.report.findings import pair_json
from services.lab.report.html import write_html
from services.lab.report.pdf import write_pdf
from services.lab.report.style import INK, MUTED, RC, Palette
from services.lab.report.wording import chance, listed, number, quantity


def write_comparison(folders: list[Path], out: Path, *, dpi: int = DPI) -> list[Path]:
    """Compare each folder with the first: comparison.html, .pdf, .json and a figure in `out`."""
    if not 2 <= len(folders) <= len(ascii_uppercase):
        raise ExperimentError("give two folders of experiments or more, 26 at most")
    studies = dict(zip(ascii_uppercase, map(read, folders), strict=False))
    names = dict(zip(studies, (folder.resolve().name for folder in folders), strict=True))
    out.mkdir(parents=True, exist_ok=True)
    changes = changes_since(studies)
    settings = {
        letter: settings_that_differ(studies["A"], study) for letter, study in studies.items()
    }
    summary = [*said_of_settings(settings), *said_of_changes(studies, changes)]
    pictures = _draw(studies["A"], changes, out / "figures", dpi)
    document = _document(studies, names, settings, changes, summary, pictures)
    numbers = out / "comparison.json"
    numbers.write_text(
        json.dumps(
            {
                "folders": names,
                "settings": settings,
                "summary": summary,
                "changes": [
                    {"folder": c.letter, "variant": c.variant, "scheduler": c.scheduler,
                     **pair_json(c.test),
                     **{f: found and found.to_json() for f, found in c.also.items()}}
                    for c in changes
                ],
            },
            indent=1, ensure_ascii=False, default=str,
        )
        + "\n"
    )  # fmt: skip
    return [
        write_html(document, out / "comparison.html"),
        write_pdf(document, out / "comparison.pdf"),
        numbers,
        *(file for picture in pictures for file in (picture.png, picture.svg)),
    ]


def _document(
    studies: dict[str, Study],
    names: dict[str, str],
    settings: dict[str, list[tuple[str, Any, Any]]],
    changes: list[Change],
    summary: list[str],
    pictures: list[Picture],
) -> Document:
    first = studies["A"]
    compared = Table(
        ["", "Folder", "Experiment", "Tasks", "Seeds", "Version", "Commit", "Finished"],
        [
            [
                letter, names[letter], study.experiment.name, f"{study.experiment.tasks:,}",
                listed([str(seed) for seed in study.seeds]), str(study.provenance.get("version")),
                str(study.provenance.get("commit") or "–")[:10],
                str(study.provenance.get("finished_at") or "–")[:10],
            ]
            for letter, study in studies.items()
        ],
        text_columns=(0, 1, 2, 4, 5, 6, 7), widths=(0.3, 1.6, 1.2, 0.8, 1.2, 0.8, 1.1, 1),
    )  # fmt: skip
    differing = [
        [letter, path, short(old), short(new)]
        for letter, found in settings.items()
        for path, old, new in found
    ]
    blocks: list[Block] = [compared]
    if differing:
        head = ["", "Setting", "A", "There"]
        blocks.append(Table(head, differing, text_columns=(0, 1, 2, 3), widths=(0.3, 2, 2, 2)))
    else:
        blocks.append(Text("No setting differs."))
    rows = [
        [
            change.letter, who(first, change), quantity(change.test.ratio),
            chance(change.test.p), chance(change.test.p_adjusted),
            *(number(found.mean) if found else "–" for found in change.also.values()),
        ]
        for change in changes
    ]  # fmt: skip
    headers = [
        "",
        "Scheduler",
        "Total time over A's [95 % CI]",
        "p",
        "p after Holm",
        *ALSO.values(),
    ]
    note = (
        "Every figure is the later folder's over that of A, paired by seed (geometric mean): below "
        "1 is less than in A. Tests are paired t tests on the logarithm of the total time, "
        "corrected "
        f"after Holm over {len(rows)} tests. Seeds that only one folder has are left out; few "
        "seeds leave small differences unseen."
    )
    sections = [
        Section("What was compared", blocks),
        Section("Differences", [Text(note), Table(headers, rows, text_columns=(0, 1),
                                widths=(0.3, 1.8, 1.9, 0.8, 0.9, 0.9, 0.8, 1))] if rows else []),
        Section("Figure", [Figure(picture, 1) for picture in pictures]),
        Section("What is seen", [Bullets(summary)] if len(summary) > 6 else []),
    ]  # fmt: skip
    return Document(
        f"Comparison: {first.experiment.title}",
        "What changed between "
        + listed([f"{letter} ({name})" for letter, name in names.items()])
        + "?",
        f"{len(studies)} folders of results",
        summary[:6],
        [section for section in sections if section.blocks],
    )


def _draw(first: Study, changes: list[Change], folder: Path, dpi: int) -> list[Picture]:
    """Ratios to A with their intervals, a panel for each folder."""
    letters = sorted({change.letter for change in changes})
    if not letters:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(dict.fromkeys(who(first, change) for change in changes))
    palette = Palette(first.schedulers())
    with matplotlib.rc_context(RC):
        canvas, axes = panels(len(letters), 0.6 + 0.19 * len(rows), share_y=True)
        for panel, letter in zip(axes, letters, strict=True):
            for change in (change for change in changes if change.letter == letter):
                y, found = rows.index(who(first, change)), change.test.ratio
                below, above = whiskers(found)
                colour, marker = palette.colour(change.scheduler), palette.marker(change.scheduler)
                panel.errorbar(found.mean, y, xerr=[[below], [above]], color=colour, capsize=2)
                panel.plot(found.mean, y, marker, color=colour, markersize=5)
            panel.axvline(1.0, color=MUTED, linewidth=0.8)
            low, high = panel.get_xlim()
            panel.set_xlim(min(max(low, 1e-3), 0.98), max(high, 1.02))
            log_axis(panel, "x")
            panel.xaxis.set_major_formatter(lambda value, _: f"{tick(value)} ×")
            panel.set_xlabel(f"Total time in {letter} over A (log scale)")
            panel.set_yticks(range(len(rows)), rows, color=INK)
            panel.set_ylim(len(rows) - 0.4, -0.6)
            panel.grid(visible=False, axis="y")
        note = "Left of 1: faster than in A. Whiskers: 95 % confidence interval over shared seeds."
        return [save("comparison", Drawing(canvas, "Total time over that of A", note), folder, dpi)]
