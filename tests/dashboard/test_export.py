"""Every widget can be taken along: as a picture, a drawing, and its figures."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image

from tests.dashboard.browser import Viewer
from tests.dashboard.conftest import ALL_SCHEDULERS, TASKS
from tests.e2e.arena import ArenaProcess

SVG = "{http://www.w3.org/2000/svg}svg"
PNG_SCALE = 2
FORMATS = ("PNG picture", "SVG drawing", "CSV of what is shown")
# The widgets of these views together are all that there are.
VIEWS: dict[str, dict[str, Any]] = {
    "arena": {},
    "scheduler": {"scheduler": "hybrid_ml"},
    "history": {},
    "task": {"task": 5},
    "compare": {},
}


def export(viewer: Viewer, widget: str, item: str) -> bytes:
    viewer.page.get_by_test_id(f"export-{widget}").click()
    with viewer.page.expect_download() as download:
        viewer.widget(widget).get_by_text(item, exact=True).click()
    return Path(download.value.path()).read_bytes()


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def check_picture(content: bytes, width: float) -> None:
    picture = Image.open(io.BytesIO(content))
    assert picture.format == "PNG"
    # What is shown, at twice the resolution; content that scrolls may be wider than its widget.
    assert picture.width >= (width - 44) * PNG_SCALE
    assert picture.height >= 60 * PNG_SCALE
    colours = picture.convert("RGB").getcolors(maxcolors=2**24) or []
    background = max(count for count, _ in colours)
    assert len(colours) > 20, "nothing is drawn"
    assert background < picture.width * picture.height, "nothing is drawn"


def check_drawing(content: bytes) -> None:
    root = ElementTree.fromstring(content)
    assert root.tag == SVG
    assert float(root.attrib["width"]) > 100
    assert len(list(root.iter())) > 5


@pytest.mark.parametrize("view", VIEWS)
def test_every_widget_has_a_picture_a_drawing_and_its_figures(
    viewer: Viewer, run: str, rack: str, view: str
) -> None:
    more = {"a": run, "b": rack} if view == "compare" else {}
    viewer.open(view, run=run, **VIEWS[view], **more)
    viewer.wait_until_drawn()
    buttons = viewer.page.locator("[data-testid^='export-']")
    names = buttons.evaluate_all("all => all.map(one => one.dataset.testid.slice(7))")
    assert names
    for name in names:
        width = viewer.widget(name).bounding_box()["width"]
        picture, drawing, figures = (export(viewer, name, item) for item in FORMATS)
        check_picture(picture, width)
        check_drawing(drawing)
        table = list(csv.reader(io.StringIO(figures.decode())))
        assert len(table) >= 2, f"{name} has no figures"
        assert all(any(cell for cell in row) for row in table if row), name


def test_the_figures_are_those_of_the_store(viewer: Viewer, arena: ArenaProcess, run: str) -> None:
    viewer.open("arena", run=run)
    rows = rows_of(export(viewer, "comparison", "CSV of what is shown"))
    stored = arena.sql(
        "SELECT scheduler, avg(turnaround) AS turnaround, sum(r.time) AS total "
        f"FROM scheduler_results AS r FINAL WHERE run = '{run}' GROUP BY scheduler "
        "ORDER BY turnaround"
    )
    assert len(rows) == len(stored) == len(ALL_SCHEDULERS)
    # A badge behind a name is a word of its own.
    assert {"Oracle reference", "Clairvoyant reference"} <= {
        cell for row in rows for cell in row.values()
    }
    for row, expected in zip(rows, stored, strict=True):  # sorted as on the screen
        assert float(row["Avg turnaround"]) == pytest.approx(expected["turnaround"], rel=5e-6)
        assert float(row["Total execution"]) == pytest.approx(expected["total"], rel=5e-6)
        assert int(row["Tasks"]) == TASKS


def test_the_ledger_has_every_task_of_the_run(
    viewer: Viewer, arena: ArenaProcess, run: str
) -> None:
    viewer.open("arena", run=run)
    rows = rows_of(export(viewer, "decisions", "CSV of the whole run"))
    stored = arena.sql(
        f"SELECT scheduler, task_id, time, wait FROM scheduler_results FINAL WHERE run = '{run}'"
    )
    exported = {(row["scheduler"], int(row["task_id"])): row for row in rows}
    assert len(exported) == len(rows) == len(stored) == TASKS * len(ALL_SCHEDULERS)
    for row in stored:
        found = exported[row["scheduler"], row["task_id"]]
        assert float(found["time"]) == row["time"]
        assert float(found["wait"]) == row["wait"]


def test_the_menu_stays_open_while_the_run_goes_on(viewer: Viewer, arena: ArenaProcess) -> None:
    run = arena.start_run(pace=40, seed=5, schedulers=["greedy", "oracle", "eft"])
    viewer.open("arena", run=run)
    processed = viewer.page.get_by_test_id("tasks-processed")

    def tasks() -> int:
        return int(processed.get_attribute("data-value") or 0)

    viewer.wait_until(lambda: tasks() > 0)
    viewer.page.get_by_test_id("export-cumulative").click()
    before = tasks()
    viewer.wait_until(lambda: tasks() > before + 60)  # several updates
    with viewer.page.expect_download() as download:
        viewer.widget("cumulative").get_by_text("PNG picture").click()
    check_picture(Path(download.value.path()).read_bytes(), 300)
    arena.http.post("/api/simulation/stop", params={"run": run})


def test_the_csv_of_a_curve_has_its_points(viewer: Viewer, arena: ArenaProcess, run: str) -> None:
    viewer.open("arena", run=run)
    viewer.wait_until_drawn()
    viewer.chart("cumulative")
    rows = rows_of(export(viewer, "cumulative", "CSV of what is shown"))
    greedy = [row for row in rows if row["line"] == "greedy"]
    assert len(greedy) > 10
    (stored,) = arena.sql(
        "SELECT count() AS tasks, sum(turnaround) AS total FROM scheduler_results "
        f"FINAL WHERE run = '{run}' AND scheduler = 'greedy'"
    )
    assert int(greedy[-1]["tasks"]) == stored["tasks"]
    assert float(greedy[-1]["total_turnaround"]) == pytest.approx(stored["total"], rel=1e-6)


def test_the_arrow_keys_go_through_the_menu(viewer: Viewer, run: str) -> None:
    viewer.open("arena", run=run)
    viewer.wait_until_drawn()
    viewer.page.get_by_test_id("export-comparison").focus()
    for key in ("Enter", "ArrowDown", "ArrowDown"):
        viewer.page.keyboard.press(key)
    with viewer.page.expect_download() as download:
        viewer.page.keyboard.press("Enter")
    assert download.value.suggested_filename == "comparison.csv"


def test_the_menu_works_by_keyboard_alone(viewer: Viewer, run: str) -> None:
    viewer.open("arena", run=run)
    viewer.wait_until_drawn()
    button = viewer.page.get_by_test_id("export-comparison")
    button.focus()
    keys = viewer.page.keyboard
    keys.press("Enter")
    keys.press("Escape")
    viewer.widget("comparison").get_by_text("PNG picture").wait_for(state="detached")
    assert focused(viewer) == "export-comparison"
    keys.press("Enter")
    keys.press("Tab")
    keys.press("Tab")
    with viewer.page.expect_download() as download:
        keys.press("Enter")
    assert download.value.suggested_filename == "comparison.csv"
    assert len(rows_of(Path(download.value.path()).read_bytes())) == len(ALL_SCHEDULERS)
    assert focused(viewer) == "export-comparison"


def focused(viewer: Viewer) -> str | None:
    name: str | None = viewer.page.evaluate("document.activeElement.dataset.testid")
    return name
