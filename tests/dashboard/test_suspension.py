"""A plug-in that keeps failing, seen on the page: why, and what can be done about it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.dashboard.browser import Viewer
from tests.dashboard.conftest import FAULTY_SEED, PLUGIN
from tests.e2e.arena import ArenaProcess

SCHEDULERS = ["greedy", "halves", "round_robin"]


def start(arena: ArenaProcess) -> str:
    return arena.start_run(pace=20, seed=FAULTY_SEED, schedulers=SCHEDULERS)


def compared(viewer: Viewer) -> set[str]:
    return {row["scheduler"] for row in viewer.table("comparison")}


def test_a_suspended_scheduler_is_left_out_and_its_events_are_one_line(
    viewer: Viewer, arena: ArenaProcess
) -> None:
    """The retry fails again, since the plug-in is as faulty as before."""
    run = start(arena)
    page = viewer.page
    viewer.open("scheduler", run=run, scheduler="halves")
    page.get_by_test_id("retry").click()
    page.get_by_test_id("suspended").wait_for(state="detached")
    page.get_by_test_id("leave-out").click()
    page.get_by_text("was left out of this run").wait_for()
    # Compared with nobody, so there is nothing to compare with the Oracle.
    assert page.locator("[data-testid^='widget-']").count() == 1
    viewer.open("arena", run=run)
    page.get_by_test_id("left-out").get_by_role("link", name="Halves").wait_for()
    viewer.open("log", run=run, events="run", level="problem")
    suspended = page.locator('[data-testid="event"][data-kind="suspended"]')
    suspended.get_by_test_id("event-count").get_by_text("× 2").wait_for()
    assert page.locator('[data-testid="event"][data-kind="run"]').count() == 0
    arena.http.post("/api/simulation/stop", params={"run": run})


def test_a_failing_plugin_is_suspended_fixed_and_retried(
    viewer: Viewer, arena: ArenaProcess, plugin: Path
) -> None:
    """The last test: its worker keeps the fixed plug-in."""
    run = start(arena)
    page = viewer.page
    viewer.open("arena", run=run)
    notice = page.get_by_test_id("suspended")
    # On a busy machine a later batch may be tried often enough first.
    notice.get_by_text(re.compile(r"it kept failing on batch \d")).wait_for()
    # The run goes on without it.
    viewer.wait_until(
        lambda: int(page.get_by_test_id("tasks-processed").get_attribute("data-value") or 0) > 40
    )
    viewer.wait_until(lambda: compared(viewer) == {"greedy", "round_robin"})
    notice.get_by_role("link", name="Details").click()
    page.get_by_text("gpu_fraction must be 0..1, got 1.7").wait_for()
    # Once it is fixed, it decides all that it has missed.
    plugin.write_text(PLUGIN.format(faulty_seed=-1))
    page.get_by_test_id("retry").click()
    notice.wait_for(state="detached")
    viewer.open("arena", run=run)
    viewer.wait_until(lambda: compared(viewer) == set(SCHEDULERS))
    arena.http.post("/api/simulation/stop", params={"run": run})
