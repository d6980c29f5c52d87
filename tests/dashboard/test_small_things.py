"""Small things that one notices: order, focus, theme, tables, a lost connection."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.dashboard.browser import PHONE, Viewer, new_context
from tests.e2e.arena import ArenaProcess

# Whether the focused element's outline, 4 px around it, is inside of everything that clips it.
RING_IS_VISIBLE = """
    () => {
        const ring = document.activeElement.getBoundingClientRect();
        for (let box = document.activeElement.parentElement; box; box = box.parentElement) {
            if (getComputedStyle(box).overflowX === "visible") continue;
            const {left, right, top, bottom} = box.getBoundingClientRect();
            if (ring.left - 4 < left || ring.right + 4 > right) return false;
            if (ring.top - 4 < top || ring.bottom + 4 > bottom) return false;
        }
        return true;
    }
"""


def test_tab_goes_through_the_race_by_rank_and_its_focus_ring_is_not_cut(
    viewer: Viewer, run: str
) -> None:
    viewer.open("arena", run=run)
    bars = viewer.chart("comparison").locator("[data-place]")
    bars.first.wait_for()
    ranked = [bar.get_attribute("data-scheduler") for bar in bars.all()]
    places = bars.evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
    assert places == sorted(places)
    bars.first.get_by_role("link").focus()
    reached = []
    for _ in ranked:
        name = "document.activeElement.closest('[data-place]')?.dataset.scheduler"
        reached.append(viewer.page.evaluate(name))
        assert viewer.page.evaluate(RING_IS_VISIBLE), reached
        viewer.page.keyboard.press("Tab")
    assert reached == ranked


def test_what_has_the_focus_is_not_below_the_header(viewer: Viewer, run: str) -> None:
    viewer.open("arena", run=run)
    viewer.wait_until_drawn()
    viewer.widget("decisions").get_by_role("link").first.focus()
    header = viewer.page.get_by_role("banner").evaluate("one => one.offsetHeight")
    for _ in range(40):
        viewer.page.keyboard.press("Shift+Tab")
        name, top = viewer.page.evaluate(
            "[document.activeElement.ariaLabel, document.activeElement.getBoundingClientRect().top]"
        )
        assert top >= header, name


def test_a_table_stays_a_table_in_another_layout(viewer: Viewer, run: str) -> None:
    viewer.open("arena", run=run)
    viewer.table("comparison")
    viewer.page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    toggle = viewer.page.get_by_test_id("table-toggle-comparison")
    viewer.wait_until(lambda: viewer.page.get_by_test_id("reset-layout").count() == 0)
    assert toggle.get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_is_that_of_the_system_until_one_is_chosen(
    browser: Browser, arena: ArenaProcess, run: str, theme: str
) -> None:
    context = new_context(browser, color_scheme=theme)
    viewer = Viewer(context.new_page(), arena.announced["url"])
    viewer.open("log", run=run)
    assert viewer.page.evaluate("document.documentElement.dataset.theme") == theme
    ground = viewer.page.locator('meta[name="theme-color"]').get_attribute("content")
    assert ground == {"light": "#eef1f7", "dark": "#070a12"}[theme]  # around the page, on a phone
    context.close()


def test_a_view_can_be_opened_without_a_connection(viewer: Viewer, run: str) -> None:
    viewer.open("arena", run=run)
    viewer.wait_until_drawn()
    # The code of all views is loaded a few seconds after the first one is shown.
    viewer.page.wait_for_function(
        "() => performance.getEntriesByType('resource').some(one => /NewRun/.test(one.name))"
    )
    viewer.page.context.set_offline(True)
    viewer.page.get_by_test_id("new-run").click()
    viewer.page.get_by_test_id("start-run").wait_for()
    viewer.page.get_by_test_id("stale").get_by_role("button", name="Retry").wait_for()
    viewer.page.context.set_offline(False)
    viewer.wait_for_state("live", "quiet")  # quiet: seconds after the last message of a run
    viewer.errors.clear()  # of the lost connection


def test_enter_goes_through_the_tour_of_a_first_visit(
    browser: Browser, arena: ArenaProcess, run: str
) -> None:
    context = browser.new_context()
    viewer = Viewer(context.new_page(), arena.announced["url"])
    viewer.open("log", run=run)
    tour = viewer.page.get_by_test_id("tour")
    for step in range(1, 6):
        tour.get_by_text(f"{step} of 5").wait_for()
        viewer.page.keyboard.press("Enter")
    tour.wait_for(state="detached")
    viewer.page.reload()
    viewer.widget("services").wait_for()
    assert tour.count() == 0
    context.close()
