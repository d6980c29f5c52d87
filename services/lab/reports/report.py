"""The report of an experiment: from its folder to HTML, PDF, figures, CSV and all numbers."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from services.lab.reports.document import Document
from services.lab.reports.figures.draw import DPI, Picture, draw_all
from services.lab.reports.html import write_html
from services.lab.reports.pdf import write_pdf
from services.lab.reports.results import SchedulerResult, compute_results
from services.lab.reports.sections import make_document
from services.lab.reports.statistics import PairedTest
from services.lab.reports.study import read, write_csv
from services.lab.reports.summary import summarize


def write(folder: Path, *, dpi: int = DPI) -> list[Path]:
    """Write the report of the experiment in this folder; returns the files."""
    study = read(folder)
    results = compute_results(study)
    summary = summarize(study, results)
    pictures = list(draw_all(study, results, folder / "figures", dpi))
    document = make_document(study, results, summary, pictures)
    numbers = {
        "experiment": study.experiment.name,
        "title": study.experiment.title,
        "measure": study.experiment.measure,
        "seeds": study.seeds,
        "tasks": study.experiment.tasks,
        "judged": study.experiment.judged,
        "summary": summary,
        "figures": {picture.name: picture.caption for picture in pictures},
        "variants": {each.variant: each for each in results.variants},
        "sweep": results.sweep,
        "breakdown": results.breakdown,
    }
    written = write_document(document, numbers, pictures, folder, "report")
    return [*written, *write_csv(study, folder / "data")]


def write_document(
    document: Document, numbers: dict[str, Any], pictures: list[Picture], folder: Path, name: str
) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / f"{name}.json"
    data.write_text(json.dumps(plain(numbers), indent=1, ensure_ascii=False) + "\n")
    return [
        write_html(document, folder / f"{name}.html"),
        write_pdf(document, folder / f"{name}.pdf"),
        data,
        *(file for picture in pictures for file in (picture.png, picture.svg)),
    ]


def plain(value: Any) -> Any:
    """What JSON can express; infinity and NaN become null."""
    if is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        if isinstance(value, SchedulerResult):
            named = {**named.pop("figures"), **named}
        if isinstance(value, PairedTest):
            named["significant"] = value.significant
        return plain(named)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value
