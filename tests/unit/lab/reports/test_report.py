"""The files of a report: valid, consistent, and the same for the same input."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pypdfium2
import pytest
from matplotlib.image import imread

from services.lab.experiments.declaration import ExperimentError
from services.lab.experiments.tables import ADDED, TABLES
from services.lab.reports import report
from shared.errors import ArenaError
from tests.unit.lab.reports.synthetic import ALL_FIGURES, REFERENCE, SIX, Synthetic, declare

DPI = 45
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """Checks that tags are closed in order; collects what the page says and refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.refers: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "data", "action"):
                self.refers.append(value or "")
            if name == "id":
                self.ids.append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)


def page_of(file: Path) -> Page:
    page = Page()
    page.feed(file.read_text())
    page.close()
    assert page.open == []
    return page


def text_of(file: Path) -> tuple[int, str]:
    """Pages and words of a PDF."""
    pdf = pypdfium2.PdfDocument(file)
    try:
        texts = []
        for i in range(len(pdf)):
            page = pdf[i]
            texts.append(page.get_textpage().get_text_bounded())
        return len(pdf), " ".join(" ".join(texts).split())
    finally:
        pdf.close()


def full(**changes: Any) -> Synthetic:
    experiment = declare(
        judge_from=1000, reference=REFERENCE, compare=("rl_agent",), tasks=1500, **changes
    )
    return Synthetic(
        experiment,
        {**SIX, "hybrid_ml": 1.2, "my_plugin": 2.0},
        recovered={"hybrid_ml": 40},
        with_parents=True,
        sample=150,
        stretches=60,
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """A report with every figure but the sweep."""
    folder = full().write(tmp_path_factory.mktemp("report"))
    return folder, report.write(folder, dpi=DPI)


def test_write_returns_the_files(written: tuple[Path, list[Path]]) -> None:
    folder, files = written
    assert all(file.is_file() and file.stat().st_size > 0 for file in files)
    names = {str(file.relative_to(folder)) for file in files}
    assert {"report.html", "report.pdf", "report.json"} <= names
    assert {f"data/{table}.csv" for table in TABLES} <= names
    drawn = {f"figures/{name}.{end}" for name in ALL_FIGURES for end in ("png", "svg")}
    assert drawn - names == {
        f"figures/{name}.{end}" for name in ("sweep", "breakdown") for end in ("png", "svg")
    }


def test_no_figure_is_blank(written: tuple[Path, list[Path]]) -> None:
    for file in written[1]:
        if file.suffix == ".png":
            pixels = imread(file)[..., :3]
            inked = (np.abs(pixels - 1.0) > 0.1).any(axis=2)
            assert inked.mean() > 0.01, file.name
            # Something is drawn in every quarter's height, so no panel is empty.
            assert all(part.any() for part in np.array_split(inked, 4)), file.name
        elif file.suffix == ".svg":
            assert file.read_text().count("<path") > 20, file.name


def test_the_page_loads_nothing(written: tuple[Path, list[Path]]) -> None:
    page = page_of(written[0] / "report.html")
    assert all(ref.startswith(("#", "data:image/")) for ref in page.refers)
    source = (written[0] / "report.html").read_text()
    assert "http://" not in source
    assert "https://" not in source
    assert "@import" not in source
    assert "script" not in page.tags
    assert page.tags.count("svg") == len(ALL_FIGURES) - 2
    assert len(page.ids) == len(set(page.ids))
    assert {ref[1:] for ref in page.refers if ref.startswith("#")} <= set(page.ids)


def test_html_and_pdf_have_the_same_text(written: tuple[Path, list[Path]]) -> None:
    folder, _ = written
    text = " ".join(" ".join(page_of(folder / "report.html").texts).split())
    pages, printed = text_of(folder / "report.pdf")
    assert 5 <= pages <= 16
    assert f"Page {pages} " in printed
    squeezed = re.sub(r"\s", "", printed)
    numbers = json.loads((folder / "report.json").read_text())
    assert 2 <= len(numbers["summary"]) <= 6
    for sentence in numbers["summary"]:
        assert sentence in text
        assert re.sub(r"\s", "", sentence) in squeezed
    for words in (
        "hybrid experiment run synthetic --out results", "Model X", "0123456789abcdef",
        "run-x-3", "T = (N / 1000) ^ 1.5", "clickhouse", "812.5", "my_plugin",
        "intensity_offset: 0.5", "Paired t tests", "n = 5 seeds",
    ):  # fmt: skip
        assert words in text, words
        assert re.sub(r"\s", "", words) in squeezed, words


def test_every_number_of_the_table_is_in_the_json(written: tuple[Path, list[Path]]) -> None:
    numbers = json.loads((written[0] / "report.json").read_text())
    result = numbers["variants"][""]["schedulers"]["oracle"]
    # (100 + 3 seed) over five seeds; deviation of 3 * (1..5) is 4.743, t(4) = 2.7764.
    assert result["total_time"]["mean"] == pytest.approx(109)
    assert result["total_time"]["high"] == pytest.approx(109 + 2.7764 * 4.7434 / 5**0.5, rel=1e-4)
    assert numbers["variants"][""]["reference"]["greedy"]["our_rank"] == 2
    # All pairs of eight schedulers.
    assert len(numbers["variants"][""]["pairs"]["total_time"]) == 28


def test_the_tables_are_handed_out_as_csv(written: tuple[Path, list[Path]]) -> None:
    folder, _ = written
    for name, schema in TABLES.items():
        with (folder / "data" / f"{name}.csv").open(newline="") as file:
            head, *rows = csv.reader(file)
        table = pyarrow.parquet.read_table(folder / "data" / f"{name}.parquet")
        assert head == schema.names
        assert len(rows) == table.num_rows
    with (folder / "data" / "graph.csv").open(newline="") as file:
        parents = [row["parents"] for row in csv.DictReader(file)]
    expected = table_parents(folder)
    assert parents == [" ".join(map(str, ids)) for ids in expected]


def table_parents(folder: Path) -> list[list[int]]:
    table = pyarrow.parquet.read_table(folder / "data" / "graph.parquet")
    ids: list[list[int]] = table.column("parents").to_pylist()
    return ids


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    some = ("total_time", "regret", "workload", "graph")
    folders = [full(figures=some).write(tmp_path / name / "out") for name in ("a", "b")]
    first, second = ({f.name: f.read_bytes() for f in report.write(d, dpi=DPI)} for d in folders)
    assert first.keys() == second.keys()
    for name in first:
        assert first[name] == second[name], name


def test_a_sweep_with_its_figure(tmp_path: Path) -> None:
    variants = {
        f"r{rate}": {"label": f"{rate} tasks/s", "value": rate,
                     "spec": {"workload": {"arrival_rate": rate}}}
        for rate in (1, 4, 16)
    }  # fmt: skip
    experiment = declare(
        variants=variants, axis="arrival rate", seeds=(1, 2), figures=("sweep", "makespan")
    )
    synthetic = Synthetic(experiment, wait=lambda v, name: float(v[1:]) ** 3 / 500, sample=50)
    files = report.write(synthetic.write(tmp_path), dpi=DPI)
    assert "sweep.svg" in {file.name for file in files}
    page = page_of(tmp_path / "report.html")
    text = " ".join(" ".join(page.texts).split())
    assert "workload.arrival_rate: 16" in text
    assert "16 tasks/s" in text


def test_one_seed_without_oracle_models_or_baseline(tmp_path: Path) -> None:
    factors = {"cpu_only": 2.0, "gpu_only": 1.5}
    bare = Synthetic(
        declare(seeds=(4,), judge_from=500), factors, with_models=False, sample=40, stretches=20
    )
    folder = bare.write(tmp_path)
    provenance = json.loads((folder / "provenance.json").read_text())
    del provenance["processes"]
    (folder / "provenance.json").write_text(json.dumps(provenance))
    drawn = {file.stem for file in report.write(folder, dpi=DPI) if file.suffix == ".svg"}
    missing = set(ALL_FIGURES) - drawn
    assert missing == {
        "speedup", "regret", "models", "graph", "sweep", "reference", "recovery", "breakdown",
    }  # fmt: skip
    text = " ".join(page_of(folder / "report.html").texts)
    assert "One seed" in text
    assert "Peak memory" not in text
    assert "Tests between schedulers" not in text
    assert text_of(folder / "report.pdf")[0] >= 3


def test_empty_tables_and_a_bare_provenance_make_a_report(tmp_path: Path) -> None:
    folder = Synthetic(declare(), sample=20).write(tmp_path)
    for name in set(TABLES) - {"outcomes"}:
        (folder / "data" / f"{name}.parquet").unlink()
    (folder / "provenance.json").write_text("{}")
    drawn = {file.stem for file in report.write(folder, dpi=DPI) if file.suffix == ".svg"}
    assert drawn == {
        "turnaround", "total_time", "average_time", "makespan", "cost", "energy", "speedup",
    }  # fmt: skip
    page_of(folder / "report.html")


def test_nothing_measured_at_all_is_still_a_report(tmp_path: Path) -> None:
    folder = Synthetic(declare()).write(tmp_path)
    for name in TABLES:
        (folder / "data" / f"{name}.parquet").unlink()
    report.write(folder, dpi=DPI)
    page_of(folder / "report.html")


class Broken(Synthetic):
    """The baseline did nothing at all, another has no makespan."""

    def _outcome(self, who: dict[str, Any]) -> dict[str, Any]:
        row = super()._outcome(who)
        if who["scheduler"] == "greedy":
            row |= dict.fromkeys(("total_time", "avg_time", "total_energy", "total_cost"), 0.0)
        if who["scheduler"] == "random":
            row |= dict.fromkeys(("makespan", "arrival_bound", "p95_turnaround"))
        return row


def test_zeros_nulls_and_a_scheduler_in_one_variant_only(tmp_path: Path) -> None:
    def factors(variant: str) -> dict[str, float]:
        return {n: f for n, f in SIX.items() if variant == "a" or n != "rl_agent"}

    experiment = declare(
        variants={"a": {"value": 0}, "b": {"value": 5}}, seeds=(1, 2), tasks=60, judge_from=59
    )
    broken = Broken(experiment, factors, wait=lambda v, n: 0.0, sample=30, stretches=20)
    files = report.write(broken.write(tmp_path), dpi=DPI)
    assert "speedup.png" not in {file.name for file in files}
    assert "nan" not in (tmp_path / "report.json").read_text().lower()
    page_of(tmp_path / "report.html")


HOSTILE = '<script>alert("x")</script> & $\\alpha$ {{ 7*7 }} 日本'


def test_names_are_text_and_never_markup(tmp_path: Path) -> None:
    experiment = declare(
        title=HOSTILE, question=HOSTILE, explanation=HOSTILE, axis=HOSTILE, seeds=(1, 2),
        variants={HOSTILE: {"label": HOSTILE, "value": 1}, "b": {"label": "<b>", "value": 2}},
        reference={"source": HOSTILE, "notes": HOSTILE,
                   "total_time": {"oracle": 1, "greedy": 2, HOSTILE: 3}},
        figures=("total_time", "makespan", "sweep", "regret", "reference", "latency"),
    )  # fmt: skip
    factors = {"oracle": 1.0, "greedy": 1.4, HOSTILE: 2.0}
    synthetic = Synthetic(experiment, factors, sample=40, stretches=20)
    # Such a variant cannot name a run; only its tables and texts carry the name.
    files = report.write(synthetic.write(tmp_path), dpi=DPI)
    page = page_of(tmp_path / "report.html")
    assert "script" not in page.tags
    assert HOSTILE in "".join(page.texts)
    assert all(file.stat().st_size for file in files)
    assert "<script>" in text_of(tmp_path / "report.pdf")[1]


def test_a_folder_without_an_experiment_or_a_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArenaError, match=r"experiment\.json.*cannot be read"):
        report.write(tmp_path)
    folder = Synthetic(declare(), sample=20).write(tmp_path)
    table = pyarrow.parquet.read_table(folder / "data" / "outcomes.parquet").drop(["makespan"])
    pyarrow.parquet.write_table(table, folder / "data" / "outcomes.parquet")
    with pytest.raises(ExperimentError, match="no column makespan"):
        report.write(folder)


def test_a_folder_of_an_older_version_is_reported_without_the_new_figures(tmp_path: Path) -> None:
    folder = Synthetic(declare(figures=("workload",)), sample=20).write(tmp_path)
    for name in ("outcomes", "workload"):
        file = folder / "data" / f"{name}.parquet"
        table = pyarrow.parquet.read_table(file)
        pyarrow.parquet.write_table(table.drop(sorted(ADDED & set(table.column_names))), file)
    report.write(folder, dpi=DPI)
    text = " ".join(page_of(folder / "report.html").texts)
    assert "Mean turnaround (s)" in text
    assert "With idle power" not in text


MEASURED = {
    "cluster": {
        "devices": [
            {"type": "a100", "count": 8, "node": "dgx", "memory_mb": 80_000, "idle_watts": 50},
            {"type": "t4", "count": 2, "node": "small"},
            {"type": "cpu", "count": 2, "node": "dgx"},
            {"type": "cpu", "node": "small"},
        ],
        "nodes": [{"name": "dgx", "count": 3}, {"name": "small", "count": 5}],
    },
    "physics": {
        "noise": 0.25,
        "measured": [
            {"kind": "fft", "type": kind, "sizes": [10, 20], "seconds": [1, 2]}
            for kind in ("a100", "t4", "cpu")
        ],
    },
}


def test_the_methods_describe_any_cluster(tmp_path: Path) -> None:
    folder = Synthetic(declare(spec=MEASURED, figures=("energy",)), idle=25.0).write(tmp_path)
    report.write(folder, dpi=DPI)
    text = " ".join(" ".join(page_of(folder / "report.html").texts).split())
    # Three nodes with eight A100s and two CPUs each, five with two T4s and one CPU.
    assert "a100 (accelerator) 24 3 80000 16000 50 50 0.0001" in text
    assert "t4 (accelerator) 10 5 8000" in text
    assert "cpu (CPU) 11 8 –" in text
    assert "Times are measured, of 1 kind of tasks: fft." in text
    assert "25.0 % of the sampled tasks" in text  # every fourth of the synthetic ones
    assert "deviation: 25 %" in text
    assert "The cluster has 8 nodes" in text
    assert "With idle power (J)" in text
    assert "measured: 3 curves (see provenance.json)" in text


def test_failures_stand_in_every_table_that_ranks(tmp_path: Path) -> None:
    experiment = declare(figures=("total_time",), spec={"physics": {"memory_policy": "fail"}})
    folder = Synthetic(experiment, failed={"greedy": 30}).write(tmp_path)
    report.write(folder, dpi=DPI)
    text = " ".join(" ".join(page_of(folder / "report.html").texts).split())
    assert "greedy 150" in text  # of five seeds, in the outcomes
    assert "rl_agent greedy (150 failed)" in text  # the tests against the baseline
    assert "failed task charged its time on the slowest device type that can run it" in text
