"""The timeline, the queue lengths and the queues of a task, against ClickHouse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.dashboard.browser import PHONE, Viewer
from tests.dashboard.conftest import ALL_SCHEDULERS, TASKS, open_viewer
from tests.e2e.arena import ArenaProcess

SCHEDULER = "halves"  # both devices have a part of each task
TASK = 900
STRETCH = {"from": 20, "to": 40}

near = pytest.approx


@pytest.fixture(scope="module")
def viewer(browser: Browser, arena: ArenaProcess) -> Iterator[Viewer]:
    with open_viewer(browser, arena) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def rows(arena: ArenaProcess, run: str) -> list[dict[str, Any]]:
    """All results with the arrival and size of their task."""
    return arena.sql(
        "SELECT r.*, t.arrival_time AS arrival, t.size AS size "
        f"FROM (SELECT * FROM scheduler_results FINAL WHERE run = '{run}') AS r "
        f"JOIN (SELECT * FROM tasks FINAL WHERE run = '{run}') AS t USING (task_id)"
    )


def parts_of(rows: list[dict[str, Any]], scheduler: str) -> list[dict[str, Any]]:
    """Parts on the default cluster: the accelerators are devices 0 to 3, the CPU is device 4."""
    return [
        {**row, "on": row[device], "begin": row[f"{kind}_start"], "length": row[f"{kind}_time"]}
        for row in rows
        for kind, device in (("gpu", "device"), ("cpu", "cpu"))
        if row["scheduler"] == scheduler and row[f"{kind}_time"] > 0
    ]


def overlap(part: dict[str, Any], start: float, end: float) -> float:
    return max(0.0, min(part["begin"] + part["length"], end) - max(part["begin"], start))


def test_the_timeline_shows_what_ran_in_a_stretch(
    viewer: Viewer, run: str, rows: list[dict[str, Any]]
) -> None:
    start, end = 20.0, 40.0
    viewer.open("arena", run=run, scheduler=SCHEDULER, **STRETCH)
    shown = viewer.table("timeline")
    parts = [each for each in parts_of(rows, SCHEDULER) if overlap(each, start, end) > 0]
    assert [row["device"] for row in shown] == ["gpu_0", "gpu_1", "gpu_2", "gpu_3", "cpu_0"]
    for number, row in enumerate(shown):
        own = [each for each in parts if each["on"] == number]
        assert row["parts"] == len(own)
        busy = sum(overlap(each, start, end) for each in own)
        assert row["busy"] == near(busy / (end - start), abs=1e-9)
    total = viewer.chart("timeline").get_by_test_id("timeline-shown").locator("[data-value]")
    assert float(total.get_attribute("data-value")) == len(parts) > 20


def test_the_keyboard_goes_from_task_to_task(
    viewer: Viewer, run: str, rows: list[dict[str, Any]]
) -> None:
    viewer.open("arena", run=run, scheduler=SCHEDULER, **STRETCH)
    viewer.chart("timeline")
    bars = viewer.page.get_by_test_id("timeline-canvas")
    viewer.page.get_by_test_id("timeline-zoom-out").press("Tab")
    detail = viewer.page.get_by_test_id("timeline-task")
    in_order = sorted(
        (each for each in parts_of(rows, SCHEDULER) if overlap(each, 20, 40) > 0),
        key=lambda part: part["begin"],
    )
    first = in_order[0]
    second = next(each for each in in_order[1:] if each["on"] == first["on"])
    for key, part in ((None, first), ("ArrowRight", second), ("ArrowLeft", first)):
        if key:
            bars.press(key)
        viewer.page.locator(
            f'[data-testid="timeline-task"][data-task="{part["task_id"]}"]'
        ).wait_for()
        begin, length = (
            float(each.get_attribute("data-value")) for each in detail.locator("[data-value]").all()
        )
        assert (begin, length) == (near(part["begin"]), near(part["length"]))
    bars.press("Enter")
    viewer.page.get_by_test_id("task-title").wait_for()
    assert f"task={first['task_id']}" in viewer.page.url


def test_buttons_zoom_and_move_the_stretch(viewer: Viewer, run: str) -> None:
    """The stretch is in the address once it has come to rest."""
    viewer.open("arena", run=run, scheduler=SCHEDULER, **STRETCH)
    viewer.chart("timeline")
    for button, stretch in (
        ("zoom-in", "from=25&to=35"),
        ("later", "from=30&to=40"),
        ("zoom-out", "from=25&to=45"),
        ("earlier", "from=15&to=35"),
    ):
        viewer.page.get_by_test_id(f"timeline-{button}").click()
        viewer.wait_until(lambda part=stretch: part in viewer.page.url, lambda: viewer.page.url)
    viewer.page.get_by_test_id("timeline-stretch").select_option("60")
    viewer.wait_until(lambda: "last=60" in viewer.page.url and "from" not in viewer.page.url)


def test_queue_lengths_are_counts_of_unfinished_tasks(
    viewer: Viewer, run: str, rows: list[dict[str, Any]]
) -> None:
    viewer.open("arena", run=run)
    shown = {row["scheduler"]: row for row in viewer.table("queues")}
    assert set(shown) == set(ALL_SCHEDULERS)
    now = max(row["arrival"] for row in rows)
    for name, row in shown.items():
        late = [each for each in rows if each["scheduler"] == name and each["finish"] > now]
        begins = [
            min(each[f"{kind}_start"] for kind in ("gpu", "cpu") if each[f"{kind}_time"] > 0)
            for each in late
        ]
        assert row["now"] == len(late)
        assert row["waiting"] == sum(begin > now for begin in begins)
    assert shown["cpu_only"]["now"] > shown["oracle"]["now"]


def test_a_task_page_has_the_queues_that_it_found(
    viewer: Viewer, run: str, rows: list[dict[str, Any]]
) -> None:
    viewer.open("task", run=run, task=TASK)
    viewer.widget("task-queues").locator("tr[data-queue-of]").first.wait_for()
    arrival = next(row["arrival"] for row in rows if row["task_id"] == TASK)
    results = {row["scheduler"]: row for row in rows if row["task_id"] == TASK}
    earlier = [row for row in rows if row["task_id"] < TASK]
    outcomes = {row["scheduler"]: row for row in viewer.table("task-queues") if "scheduler" in row}
    for name in ALL_SCHEDULERS:
        cells = viewer.widget("task-queues").locator(f'tr[data-queue-of="{name}"] td')
        shown = [float(cell.get_attribute("data-value")) for cell in cells.all()]
        queued = [
            sum(overlap(part, arrival, 1e9) for part in parts_of(earlier, name) if part["on"] == at)
            for at in range(5)
        ]
        assert shown == near(queued, abs=1e-6)
        row, result = outcomes[name], results[name]
        assert (row["real"], row["wait"]) == (near(result["time"]), near(result["wait"]))
        parts = parts_of([result], name)
        assert row["queued"] == near(max(queued[part["on"]] for part in parts), abs=1e-6)
    assert TASKS > TASK


def test_a_phone_shows_all_of_it(browser: Browser, arena: ArenaProcess, run: str) -> None:
    with open_viewer(browser, arena, PHONE) as viewer:
        viewer.open("arena", run=run, scheduler=SCHEDULER)
        viewer.wait_until_drawn()
        for name in ("timeline", "queues"):
            box = viewer.widget(name).bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= PHONE["width"]
