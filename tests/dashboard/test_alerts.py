"""The bell: what went wrong or changed, from the stored events, also after a reload."""

from __future__ import annotations

from tests.dashboard.browser import Viewer
from tests.dashboard.conftest import FAULTY_SEED
from tests.e2e.arena import ArenaProcess

DRIFT = [{"after": 20, "preset": "cpu_friendly"}]


def test_alerts_are_counted_listed_and_found_again(viewer: Viewer, arena: ArenaProcess) -> None:
    run = arena.start_run(
        pace=40, seed=FAULTY_SEED, schedulers=["greedy", "halves"], workload={"drift": DRIFT}
    )
    page = viewer.page
    viewer.open("arena", run=run)
    bell = page.get_by_test_id("alerts")

    def unseen() -> int:
        return int(bell.get_attribute("data-value") or 0)

    # The drift, the failure and the suspension that follows it.
    viewer.wait_until(lambda: unseen() >= 3, unseen)
    arena.http.post("/api/simulation/stop", params={"run": run})
    bell.click()
    alerts = page.get_by_test_id("alert-list")
    drift = alerts.get_by_text(f"run {run}: the workload is cpu_friendly from task 20 on")
    drift.wait_for()
    assert unseen() == 0
    page.keyboard.press("Escape")
    alerts.wait_for(state="detached")
    page.reload()
    bell.click()
    drift.wait_for()
    assert unseen() == 0
    # An alert leads to where one can do something about it.
    alerts.locator('[data-kind="suspended"] a').first.click()
    page.wait_for_url("**view=scheduler**")
    page.get_by_test_id("suspended").get_by_text("gpu_fraction must be 0..1").wait_for()
