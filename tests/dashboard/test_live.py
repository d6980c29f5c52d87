"""Watching and controlling a run, and what the page does when the gateway is gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shared.domain.schedulers import BUILT_IN
from tests.dashboard.browser import Viewer
from tests.dashboard.conftest import ALL_SCHEDULERS, wait_until_stored
from tests.e2e.arena import QUICK, ArenaProcess


@pytest.fixture
def live(arena: ArenaProcess) -> Iterator[str]:
    run = arena.start_run(pace=10, seed=12, schedulers=ALL_SCHEDULERS, learning=QUICK)
    arena.wait_for(run, lambda status: status["tasks_processed"] > 0)
    yield run
    arena.http.post("/api/simulation/stop", params={"run": run})


def is_drained(status: dict[str, Any]) -> bool:
    return bool(status["tasks_processed"] == status["tasks_sent"])


def shown_tasks(viewer: Viewer) -> int:
    return min(int(row["tasks"]) for row in viewer.table("comparison"))


def test_a_run_updates_by_itself_and_shows_every_scheduler(viewer: Viewer, live: str) -> None:
    viewer.open("arena", run=live)
    viewer.wait_for_state("live")
    before = shown_tasks(viewer)
    viewer.wait_until(lambda: shown_tasks(viewer) > before + 20)
    assert {row["scheduler"] for row in viewer.table("comparison")} == set(ALL_SCHEDULERS)


def test_a_plugin_scheduler_has_a_page_like_the_others(viewer: Viewer, run: str) -> None:
    viewer.open("scheduler", run=run, scheduler="halves")
    viewer.widget("radar").wait_for()
    viewer.page.get_by_text("Half of every task on a GPU.").wait_for()
    assert {row["scheduler"] for row in viewer.table("cumulative")} == {"halves", "oracle"}


def test_pause_stops_the_tasks_and_resume_restarts_them(
    viewer: Viewer, arena: ArenaProcess, live: str
) -> None:
    viewer.open("arena", run=live)
    viewer.wait_for_state("live")
    viewer.page.get_by_test_id("pause").click()
    viewer.page.get_by_test_id("resume").wait_for()
    assert arena.status(live)["state"] == "paused"

    status = arena.wait_for(live, is_drained)
    sent = status["tasks_sent"]
    viewer.wait_until(lambda: shown_tasks(viewer) == sent)
    viewer.wait_for_state("quiet")  # several seconds without an update
    assert arena.status(live)["tasks_sent"] == sent
    viewer.page.get_by_test_id("resume").click()
    viewer.page.get_by_test_id("pause").wait_for()
    viewer.wait_until(lambda: shown_tasks(viewer) > sent)
    assert arena.status(live)["state"] == "running"


def test_after_a_killed_gateway_the_page_reconnects_and_catches_up(
    viewer: Viewer, arena: ArenaProcess, live: str
) -> None:
    viewer.open("arena", run=live)
    viewer.wait_for_state("live")
    before = shown_tasks(viewer)
    (gateway,) = arena.processes("services.gateway")
    gateway.kill()
    viewer.page.locator(
        '[data-testid="connection"]:is([data-state="reconnecting"],[data-state="offline"])'
    ).wait_for()
    viewer.wait_for_state("live")
    viewer.wait_until(lambda: shown_tasks(viewer) > before)
    arena.http.post("/api/simulation/pause", params={"run": live})
    total = arena.wait_for(live, is_drained)["tasks_sent"]
    viewer.wait_until(lambda: shown_tasks(viewer) == total)
    wait_until_stored(arena, live, total)
    (stored,) = arena.sql(
        "SELECT avg(time) AS time FROM scheduler_results FINAL "
        f"WHERE run = '{live}' AND scheduler = 'greedy'"
    )
    (shown,) = [row for row in viewer.table("comparison") if row["scheduler"] == "greedy"]
    assert shown["avg_time"] == pytest.approx(stored["time"], rel=5e-6)
    # A lost connection is an error in the console, and the only one.
    viewer.errors = [error for error in viewer.errors if not _is_lost_connection(error)]


def _is_lost_connection(error: str) -> bool:
    signs = ("ERR_CONNECTION", "WebSocket connection", "Failed to load resource", "503", "502")
    return any(sign in error for sign in signs)


def test_a_new_run_from_the_form_is_checked_and_then_watched(
    viewer: Viewer, arena: ArenaProcess, run: str
) -> None:
    viewer.open("arena", run=run)
    viewer.page.get_by_test_id("new-run").click()
    page = viewer.page
    rate = page.get_by_label("Arrival rate")
    rate.fill("-3")
    page.get_by_text("greater than 0").first.wait_for()
    assert page.get_by_test_id("start-run").is_disabled()
    rate.fill("6")
    page.get_by_label("Seed", exact=True).fill("99")
    page.locator('[data-testid="start-run"]:not([disabled])').click()
    page.wait_for_url(lambda url: "view=arena" in url and run not in url)
    newest = arena.http.get("/api/runs", params={"limit": 1}).json()[0]
    assert newest["run"] != run
    assert (newest["spec"]["seed"], newest["spec"]["workload"]["arrival_rate"]) == (99, 6)
    assert set(newest["spec"]["schedulers"]) == {*BUILT_IN, "halves"}
    assert f"run={newest['run']}" in page.url
    page.get_by_test_id("stop").click()
    page.get_by_test_id("stop-confirm").click()
    arena.wait_for(newest["run"], lambda status: status["state"] == "stopped")


def test_back_restores_the_view_from_the_address(
    viewer: Viewer, arena: ArenaProcess, run: str
) -> None:
    viewer.open("scheduler", run=run, scheduler="hybrid_ml")
    viewer.widget("radar").wait_for()
    viewer.page.get_by_role("link", name="History").or_(
        viewer.page.get_by_role("button", name="History")
    ).first.click()
    viewer.page.wait_for_url("**view=history**")
    viewer.page.go_back()
    viewer.widget("radar").wait_for()
    assert "scheduler=hybrid_ml" in viewer.page.url
    assert f"run={run}" in viewer.page.url
