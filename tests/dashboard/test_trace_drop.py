"""A CSV file that is dropped into the form of a new run becomes a run of its tasks."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route

from tests.dashboard.browser import Viewer
from tests.dashboard.conftest import open_viewer, wait_until_stored
from tests.e2e.arena import ArenaProcess

COLUMNS = (
    "task_id",
    "size",
    "compute_intensity",
    "memory_required",
    "arrival_time",
    "dependencies",
)
# Every tenth job waits for the one before it, which the file calls by its own number.
JOBS = [
    (100 + n, 200 + 10 * n, 0.5, 64 + n, n * 0.25, str(99 + n) if n % 10 == 9 else "")
    for n in range(78)
]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows(JOBS)
    path = tmp_path / "cluster-jobs.csv"
    path.write_text(text.getvalue())
    return path


# A drop is an event with a file; Playwright has no mouse that carries files.
DROP = """
    ([box, name, text]) => {
        const files = new DataTransfer();
        files.items.add(new File([text], name, {type: "text/csv"}));
        for (const kind of ["dragover", "drop"])
            box.dispatchEvent(new DragEvent(kind, {bubbles: true, dataTransfer: files}));
    }
"""


def forget_refusals(viewer: Viewer) -> None:
    """The browser reports answers that are no success: the run has no room yet, a bad task."""
    viewer.errors = [each for each in viewer.errors if "status of 4" not in each]


def drop(viewer: Viewer, name: str, text: str) -> None:
    box = viewer.page.get_by_test_id("trace-drop").element_handle()
    viewer.page.evaluate(DROP, [box, name, text])


def test_a_dropped_trace_is_replayed_to_its_end(
    viewer: Viewer, arena: ArenaProcess, run: str, trace: Path
) -> None:
    viewer.open("new", run=run)
    drop(viewer, trace.name, trace.read_text())
    viewer.page.wait_for_url(lambda url: "view=arena" in url and run not in url)
    newest = arena.http.get("/api/runs", params={"limit": 1}).json()[0]
    assert newest["spec"]["name"] == trace.name
    arena.complete(newest["run"])
    wait_until_stored(arena, newest["run"], len(JOBS), len(newest["spec"]["schedulers"]))
    stored = arena.sql(
        "SELECT size, memory_required, arrival_time, dependencies FROM tasks FINAL "
        f"WHERE run = '{newest['run']}' ORDER BY task_id"
    )
    assert [tuple(row.values()) for row in stored] == [
        (size, memory, at, [n - 1] if parent else [])
        for n, (_, size, _, memory, at, parent) in enumerate(JOBS)
    ]
    viewer.page.get_by_test_id("run-facts").get_by_text(trace.name).wait_for()
    forget_refusals(viewer)


def hold_posts(route: Route) -> None:
    """Tasks that are sent get no answer."""
    if route.request.method != "POST":
        route.continue_()


def test_a_run_is_stopped_when_the_page_that_sends_its_trace_is_closed(
    browser: Browser, arena: ArenaProcess, run: str, trace: Path
) -> None:
    with open_viewer(browser, arena) as viewer:
        viewer.open("new", run=run)
        viewer.page.route(re.compile(r"/tasks(\?|$)"), hold_posts)
        drop(viewer, trace.name, trace.read_text())
        notice = viewer.page.get_by_test_id("sending-trace")
        notice.get_by_text("0 of 78 tasks").wait_for()
        newest = arena.http.get("/api/runs", params={"limit": 1}).json()[0]
        # Another view does not end it.
        viewer.page.get_by_role("link", name="Log").click()
        viewer.widget("events").wait_for()
        viewer.page.get_by_role("link", name="Arena").click()
        notice.wait_for()
        assert arena.http.get(f"/api/runs/{newest['run']}").json()["state"] == "running"
        viewer.page.on("dialog", lambda dialog: dialog.accept())
        viewer.page.goto(f"{arena.http.base_url}/api/config")
        arena.wait_for(newest["run"], lambda status: status["state"] == "stopped")
        forget_refusals(viewer)


def test_a_run_to_which_nobody_sends_tasks_says_so(viewer: Viewer, arena: ArenaProcess) -> None:
    waiting = arena.start_run(workload={"source": "submitted"}, schedulers=["eft", "oracle"])
    viewer.open("arena", run=waiting)
    notice = viewer.page.get_by_test_id("waiting-for-tasks")
    notice.wait_for()
    tasks = "size,compute_intensity,memory_required,arrival_time\n100,0.5,10,0\n"
    arena.http.post(
        f"/api/runs/{waiting}/tasks",
        params={"first": 0, "last": "true"},
        content=tasks,
        headers={"content-type": "text/csv"},
    ).raise_for_status()
    notice.wait_for(state="detached")
    arena.complete(waiting)


def test_a_file_that_is_no_trace_says_what_is_missing(
    viewer: Viewer, arena: ArenaProcess, run: str
) -> None:
    before = arena.http.get("/api/runs", params={"limit": 1}).json()[0]["run"]
    viewer.open("new", run=run)
    viewer.page.get_by_test_id("trace-drop").wait_for()
    drop(viewer, "notes.csv", "name,size\na,3\n")
    viewer.page.get_by_text("has no column compute_intensity, memory_required").wait_for()
    drop(viewer, "bad.csv", "size,compute_intensity,memory_required,arrival_time\n-4,0.5,10,0\n")
    viewer.page.get_by_text("Could not replay the trace").nth(1).wait_for()
    newest = arena.http.get("/api/runs", params={"limit": 1}).json()[0]
    assert newest["run"] != before
    # It would wait for tasks for ever.
    arena.wait_for(newest["run"], lambda status: status["state"] == "stopped")
    forget_refusals(viewer)
