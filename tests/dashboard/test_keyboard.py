"""Everything without a mouse: start a run, compare two, export a chart, read the alerts."""

from __future__ import annotations

from playwright.sync_api import Locator

from tests.dashboard.browser import Viewer
from tests.e2e.arena import ArenaProcess

MOST_TABS = 250


def tab_to(viewer: Viewer, target: Locator) -> None:
    """Presses Tab until the target has the focus, as somebody without a mouse would."""
    target.wait_for()
    for _ in range(MOST_TABS):
        if target.evaluate("each => each === document.activeElement"):
            return
        viewer.page.keyboard.press("Tab")
    raise AssertionError(f"{MOST_TABS} times Tab do not reach {target}")


def press(viewer: Viewer, target: Locator, key: str = "Enter") -> None:
    tab_to(viewer, target)
    viewer.page.keyboard.press(key)


def test_a_run_is_started_with_the_keyboard(viewer: Viewer, arena: ArenaProcess, run: str) -> None:
    page = viewer.page
    viewer.open("arena", run=run)
    press(viewer, page.get_by_test_id("new-run"))
    tab_to(viewer, page.get_by_label("Seed", exact=True))
    page.keyboard.press("Control+a")
    page.keyboard.type("4321")
    page.locator('[data-testid="start-run"]:not([disabled])').wait_for()
    press(viewer, page.get_by_test_id("start-run"))
    page.wait_for_url(lambda url: "view=arena" in url and run not in url)
    newest = arena.http.get("/api/runs", params={"limit": 1}).json()[0]
    assert newest["spec"]["seed"] == 4321
    press(viewer, page.get_by_test_id("stop"))
    page.get_by_test_id("stop-confirm").wait_for()
    page.keyboard.press("Enter")
    arena.wait_for(newest["run"], lambda status: status["state"] == "stopped")


def test_two_runs_are_compared_and_a_chart_is_exported_with_the_keyboard(
    viewer: Viewer, run: str, rack: str
) -> None:
    page = viewer.page
    viewer.open("history", run=run)
    viewer.wait_until_drawn()
    press(viewer, page.locator("main").get_by_role("link", name="Compare", exact=True))
    page.wait_for_url("**view=compare**")
    assert page.evaluate("document.activeElement.id") == "content"
    second = page.get_by_test_id("compare-b")
    tab_to(viewer, second)
    chosen = second.input_value()
    while second.input_value() != rack:
        page.keyboard.press("ArrowDown")
        assert second.input_value() != chosen, "the list of runs has no other run"
        chosen = second.input_value()
    viewer.wait_until_drawn()
    export = page.locator("[data-testid^='export-']").first
    press(viewer, export)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename.endswith(".csv")
