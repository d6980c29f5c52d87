"""The page works with a keyboard, a screen reader, on a phone, and in the light theme."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.dashboard.browser import DESKTOP, PHONE, Viewer, new_context
from tests.e2e.arena import ArenaProcess

VIEWS: dict[str, dict[str, Any]] = {
    "arena": {},
    "scheduler": {"scheduler": "rl_agent"},
    "history": {},
    "log": {},
    "task": {"task": 5},
    "compare": {},
    "new": {},
    "guide": {"page": "schedulers.md"},
}


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_serious(
    browser: Browser, arena: ArenaProcess, run: str, view: str
) -> None:
    more = {"a": run, "b": run} if view == "compare" else {}
    check_everywhere(browser, arena, view, run=run, **VIEWS[view], **more)


@pytest.mark.parametrize("view", ["arena", "scheduler", "task"])
def test_axe_finds_nothing_serious_with_many_devices(
    browser: Browser, arena: ArenaProcess, rack: str, view: str
) -> None:
    parameters = {"run": rack, "scheduler": "greedy", "devices": "device", "task": 5}
    check_everywhere(browser, arena, view, **parameters)


def check_everywhere(browser: Browser, arena: ArenaProcess, view: str, **parameters: Any) -> None:
    # axe is a script from outside: the content security policy would block it.
    context = new_context(browser, bypass_csp=True)
    viewer = Viewer(context.new_page(), arena.announced["url"])
    viewer.open(view, **parameters)
    check(viewer, "dark", DESKTOP)
    viewer.page.get_by_label("Light theme").click()
    check(viewer, "light", DESKTOP)
    # A phone has another layout, but the same colours.
    check(viewer, "light", PHONE)
    context.close()


def check(viewer: Viewer, theme: str, size: dict[str, int]) -> None:
    page = viewer.page
    page.set_viewport_size(size)  # type: ignore[arg-type]
    viewer.wait_until_drawn()
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    serious = [
        (problem["id"], [node["html"][:200] for node in problem["nodes"]][:3])
        for problem in Axe().run(page).response["violations"]
        if problem["impact"] in ("serious", "critical")
    ]
    assert serious == [], (theme, size)
    assert viewer.errors == []
    too_wide = page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
    assert not too_wide, f"it scrolls sideways at {size['width']} px"


def test_a_theme_is_kept(viewer: Viewer, run: str) -> None:
    viewer.open("log", run=run)
    viewer.page.get_by_label("Light theme").click()
    viewer.page.reload()
    viewer.page.get_by_label("Dark theme").wait_for()
    assert viewer.page.evaluate("document.documentElement.dataset.theme") == "light"


def test_the_keyboard_reaches_the_views_and_the_controls(viewer: Viewer, run: str) -> None:
    viewer.open("arena", run=run)
    viewer.widget("comparison").wait_for()
    reached = []
    for _ in range(40):
        viewer.page.keyboard.press("Tab")
        reached.append(
            viewer.page.evaluate(
                "document.activeElement.innerText || document.activeElement.ariaLabel || ''"
            ).strip()
        )
    for name in ("Arena", "Scheduler", "History", "Log"):
        assert name in reached, reached
