"""docs/benchmarks.md is written by the commands that measure."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.bench import report

MEASURED = {
    "machine": {"cpu": "a CPU", "cores": 2, "memory_gib": 7.8},
    "rate": 3,
}


def test_every_command_that_measures_has_a_section() -> None:
    targets = re.findall(r"^(bench[a-z-]*|chaos):", Path("Makefile").read_text(), re.M)
    sections = re.findall(r"<!-- make (\S+) -->", report.PAGE.read_text())
    assert targets
    assert sorted(sections) == sorted(targets)


def test_a_command_replaces_its_own_section(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n<!-- make bench -->\nold\n<!-- end -->\n<!-- make chaos -->\nkept\n<!-- end -->\n"
    )
    monkeypatch.setattr(report, "PAGE", page)
    monkeypatch.setattr("sys.argv", ["bench", "--tasks", "7", "--write"])
    before = page.read_text()
    report.publish("bench", MEASURED, [("what", "rate"), ("tasks", "3/s")], write=False)
    assert page.read_text() == before
    report.publish("bench", MEASURED, [("what", "rate"), ("tasks", "3/s")], write=True)
    assert '"rate": 3' in capsys.readouterr().out
    head, written, kept = page.read_text().partition("`make bench ARGS='--tasks 7'` on ")
    assert head == "# Page\n<!-- make bench -->\n"
    assert written
    assert (
        "; a CPU, 2 cores, 8 GiB of memory.\n\n| what | rate |\n|---|---|\n| tasks | 3/s |\n"
        in kept
    )
    assert kept.endswith("<!-- end -->\n<!-- make chaos -->\nkept\n<!-- end -->\n")
    with pytest.raises(SystemExit, match="no section <!-- make bench-x -->"):
        report.publish("bench-x", MEASURED, [("what",)], write=True)


def test_the_record_keeps_the_lines_of_other_versions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    own = version("hybrid-ml-scheduler")
    page.write_text(
        f"# Page\n<!-- record -->\n| version |\n|---|\n| 0.0.1 | old |\n| {own} | older |\n"
        "<!-- end -->\nThe end.\n"
    )
    monkeypatch.setattr(report, "PAGE", page)
    report.record({"rate": "7/s"}, MEASURED)
    lines = page.read_text().splitlines()
    assert lines[2] == "| version | day | machine | rate |"
    assert lines[4] == "| 0.0.1 | old |"
    assert lines[5].startswith(f"| {own} | ")
    assert lines[5].endswith(" | a CPU, 2 cores, 8 GiB of memory | 7/s |")
    assert lines[6:] == ["<!-- end -->", "The end."]
