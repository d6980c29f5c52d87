"""Reports: an experiment's folder in; HTML, PDF, figures, CSV and all numbers out."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from services.lab.report.comparison import write_comparison
from services.lab.report.compose import compose
from services.lab.report.data import Study, read, write_csv
from services.lab.report.figures import DPI, Picture, draw_all
from services.lab.report.findings import Findings, work_out
from services.lab.report.html import write_html
from services.lab.report.pdf import write_pdf
from services.lab.report.text import Sentence, sentences
from services.lab.report.trends import overall, summary

__all__ = ["write", "write_comparison"]


def write(folder: Path, *, dpi: int = DPI) -> list[Path]:
    """Make the report of the experiment in this folder; says what was written."""
    study = read(folder)
    findings = work_out(study)
    seen = [*overall(study, findings), *sentences(study, findings)]
    top = summary(study, seen)
    pictures = list(draw_all(study, findings, folder / "figures", dpi))
    document = compose(study, findings, seen, top, pictures)
    return [
        write_html(document, folder / "report.html"),
        write_pdf(document, folder / "report.pdf"),
        _numbers(study, findings, seen, top, pictures, folder / "report.json"),
        *(file for picture in pictures for file in (picture.png, picture.svg)),
        *write_csv(study, folder / "data"),
    ]


def _numbers(
    study: Study,
    findings: Findings,
    seen: list[Sentence],
    top: list[str],
    pictures: list[Picture],
    file: Path,
) -> Path:
    everything = {
        "experiment": study.experiment.name,
        "title": study.experiment.title,
        "seeds": study.seeds,
        "tasks": study.experiment.tasks,
        "judged": study.experiment.tasks - study.experiment.judge_from,
        "summary": top,
        "sentences": [
            {"topic": each.topic, "variant": each.variant, "text": each.text} for each in seen
        ],
        "figures": {picture.name: picture.caption for picture in pictures},
        **findings.to_json(),
    }
    file.write_text(json.dumps(_plain(everything), indent=1, ensure_ascii=False) + "\n")
    return file


def _plain(value: Any) -> Any:
    """JSON has no infinity and no NaN; such a number is not known."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
