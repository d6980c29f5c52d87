"""A run that one watches and steers, and what the page does when the gateway goes away."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.dashboard.browser import Viewer
from tests.dashboard.conftest import EVERYBODY
from tests.e2e.arena import QUICK, ArenaProcess


@pytest.fixture
def live(arena: ArenaProcess) -> Iterator[str]:
    run = arena.start_run(pace=10, seed=12, schedulers=EVERYBODY, learning=QUICK)
    arena.wait_for(run, lambda seen: seen["tasks_processed"] > 0)
    yield run
    arena.http.post("/api/simulation/stop", params={"run": run})


def shown_tasks(viewer: Viewer) -> int:
    return min(int(row["tasks"]) for row in viewer.table("race"))


def test_a_run_moves_by_itself_and_everybody_is_there(viewer: Viewer, live: str) -> None:
    viewer.open("arena", run=live)
    viewer.wait_for_state("live")
    before = shown_tasks(viewer)
    viewer.wait_until(lambda: shown_tasks(viewer) > before + 20)
    assert {row["scheduler"] for row in viewer.table("race")} == set(EVERYBODY)


def test_a_scheduler_that_somebody_plugged_in_is_one_like_the_others(
    viewer: Viewer, run: str
) -> None:
    viewer.open("scheduler", run=run, scheduler="halves")
    viewer.widget("radar").wait_for()
    viewer.page.get_by_text("Half of every task on a GPU.").wait_for()
    assert {row["scheduler"] for row in viewer.table("cumulative")} == {"halves", "oracle"}


def test_pause_stops_the_stream_and_resume_restarts_it(
    viewer: Viewer, arena: ArenaProcess, live: str
) -> None:
    viewer.open("arena", run=live)
    viewer.wait_for_state("live")
    viewer.page.get_by_test_id("pause").click()
    viewer.page.get_by_test_id("resume").wait_for()
    assert arena.status(live)["state"] == "paused"

    def settled() -> bool:
        seen = arena.status(live)
        return bool(seen["tasks_processed"] == seen["tasks_sent"])

    viewer.wait_until(settled)
    sent = arena.status(live)["tasks_sent"]
    viewer.wait_until(lambda: shown_tasks(viewer) == sent)
    time.sleep(1.5)
    assert arena.status(live)["tasks_sent"] == sent
    viewer.page.get_by_test_id("resume").click()
    viewer.page.get_by_test_id("pause").wait_for()
    viewer.wait_until(lambda: shown_tasks(viewer) > sent)
    assert arena.status(live)["state"] == "running"


def test_a_killed_gateway_is_missed_and_what_was_missed_is_caught_up_with(
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
    arena.wait_for(live, lambda seen: seen["tasks_processed"] == seen["tasks_sent"])
    total = arena.status(live)["tasks_sent"]
    viewer.wait_until(lambda: shown_tasks(viewer) == total)
    (stored,) = arena.sql(
        "SELECT avg(time) AS time FROM scheduler_results FINAL "
        f"WHERE run = '{live}' AND scheduler = 'greedy'"
    )
    (shown,) = [row for row in viewer.table("race") if row["scheduler"] == "greedy"]
    assert shown["avg_time"] == pytest.approx(stored["time"], rel=5e-6)
    # A lost connection is an error in the console, and the only one.
    viewer.complaints = [c for c in viewer.complaints if not _lost_connection(c)]


def _lost_connection(complaint: str) -> bool:
    signs = ("ERR_CONNECTION", "WebSocket connection", "Failed to load resource", "503", "502")
    return any(sign in complaint for sign in signs)


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
    page.get_by_label("Seed").fill("99")
    page.locator('[data-testid="start-run"]:not([disabled])').click()
    page.wait_for_url(lambda url: "view=arena" in url and run not in url)
    newest = arena.http.get("/api/runs", params={"limit": 1}).json()[0]
    assert newest["run"] != run
    assert (newest["spec"]["seed"], newest["spec"]["workload"]["arrival_rate"]) == (99, 6)
    assert set(newest["spec"]["schedulers"]) == set(EVERYBODY)
    assert f"run={newest['run']}" in page.url
    page.get_by_test_id("stop").click()
    page.get_by_test_id("stop-confirm").click()
    arena.wait_for(newest["run"], lambda seen: seen["state"] == "stopped")


def test_the_address_brings_back_what_was_looked_at(
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
