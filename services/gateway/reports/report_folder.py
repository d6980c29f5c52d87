"""Reports of the lab: report.html of each experiment's folder below one folder."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

REPORT = "report.html"
TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
HEAD_CHARACTERS = 4000

Kind = Literal["experiment", "advice", "adversary"]


@dataclass(frozen=True, slots=True)
class ReportFile:
    name: str  # of the experiment's folder
    path: Path
    written_at: float

    def beside(self, name: str) -> Path | None:
        """Another file of the report, if it has it."""
        file = self.path.parent / name
        inside = file.resolve().is_relative_to(self.path.parent.resolve())
        return file if inside and file.is_file() else None

    @property
    def kind(self) -> Kind:
        """What wrote it, by the name of its folder."""
        if self.name.startswith("advice-"):
            return "advice"
        return "adversary" if self.name.startswith("adversary-") else "experiment"

    def title(self) -> str:
        """The title in the report; the folder's name if it has none."""
        with self.path.open(errors="replace") as file:
            match = TITLE.search(file.read(HEAD_CHARACTERS))
        return html.unescape(match[1]).strip() if match else self.name


def find_reports(folder: Path | None) -> list[ReportFile]:
    """All reports, newest first. Links that lead out of the folder are ignored."""
    if folder is None or not folder.is_dir():
        return []
    root = folder.resolve()
    reports = []
    for path in root.glob(f"*/{REPORT}"):
        if path.is_file() and path.resolve().is_relative_to(root):
            reports.append(ReportFile(path.parent.name, path, path.stat().st_mtime))
    return sorted(reports, key=lambda report: report.written_at, reverse=True)
