"""A real Chromium, and what tests read from the page."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

TIMEOUT_SECONDS = 120.0  # only how long a failure takes: the machine may be busy
POLL_MS = 200

DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


@contextmanager
def chromium() -> Iterator[Browser]:
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    assert executable, "Chromium is not installed: run `make browser`"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


def new_context(browser: Browser, size: dict[str, int] = DESKTOP, **options: Any) -> BrowserContext:
    """Without transitions, so that a test never sees a colour between two themes; dark unless it
    says otherwise, and of somebody who has seen the tour."""
    options = {"color_scheme": "dark", "reduced_motion": "reduce", **options}
    context = browser.new_context(viewport=size, **options)  # type: ignore[arg-type]
    context.add_init_script("localStorage.setItem('hybrid.tour', 'seen')")
    return context


class Viewer:
    """A page, and the errors in its console."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.errors: list[str] = []
        page.set_default_timeout(TIMEOUT_SECONDS * 1000)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.errors.append(f"error: {error}"))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"{message.type}: {message.text}")

    def open(self, view: str, **parameters: Any) -> None:
        """Does nothing when the page already shows this address."""
        query = "&".join(f"{name}={value}" for name, value in {"view": view, **parameters}.items())
        if self.page.url != f"{self.url}/?{query}":
            self.page.goto(f"{self.url}/?{query}")

    def widget(self, name: str) -> Any:
        return self.page.get_by_test_id(f"widget-{name}")

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a widget's table: the attributes of each row, and unrounded values."""
        widget = self.widget(name)
        widget.locator(f"[data-testid='table-toggle-{name}'], tbody").first.wait_for()
        self._toggle(name, "true")
        widget.locator("tbody tr td").first.wait_for()
        rows: list[dict[str, Any]] = widget.locator("tbody tr").evaluate_all(READ_ROWS)
        return rows

    def chart(self, name: str) -> Any:
        """The widget, switched from its table to its chart."""
        self.page.get_by_test_id(f"table-toggle-{name}").wait_for()
        self._toggle(name, "false")
        return self.widget(name)

    def _toggle(self, name: str, pressed: str) -> None:
        toggle = self.page.get_by_test_id(f"table-toggle-{name}")
        if toggle.count() and toggle.get_attribute("aria-pressed") != pressed:
            toggle.click()

    def matrix(self, name: str) -> dict[tuple[str, str], float]:
        """The cells of a widget that is a matrix, by row and column."""
        widget = self.widget(name)
        widget.locator("[data-column]").first.wait_for()
        cells = widget.locator("tr[data-row]").evaluate_all(READ_CELLS)
        values = {(row, column): value for row, column, value in cells}
        assert len(values) == len(cells)
        return values

    def wait_until(
        self,
        condition: Callable[[], bool],
        seen: Callable[[], Any] | None = None,
        seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not reached; seen: {seen() if seen else ''}"
            self.page.wait_for_timeout(POLL_MS)  # lets the browser's events in, unlike sleep

    def wait_for_state(self, *states: str) -> None:
        """Until the connection has one of these states."""
        each = (f'[data-testid="connection"][data-state="{state}"]' for state in states)
        self.page.locator(", ".join(each)).wait_for()

    def wait_until_drawn(self) -> None:
        """Every widget has its data, nothing moves, and the layout fits the window."""
        self.page.wait_for_function(DRAWN)
        # Charts follow the window through a ResizeObserver. Frames are not waited for: a busy
        # browser may withhold them from a page in which nothing changes.
        before = None
        while before != (before := self.page.evaluate(LAYOUT)):
            self.page.wait_for_timeout(POLL_MS)


DRAWN = """
    () => document.querySelector("main :is([data-testid^='widget-'], [data-testid='guide'])")
        && !document.querySelector("[aria-busy='true']")
        && document.fonts.status === "loaded"
        && document.getAnimations().length === 0
"""

LAYOUT = """
    () => [...document.querySelectorAll("main [data-testid^='widget-'], main canvas, main svg")]
        .map(element => JSON.stringify(element.getBoundingClientRect()))
        .join()
"""

READ_ROWS = """
    rows => rows.map(row => {
        const fields = {};
        for (const cell of row.querySelectorAll("[data-field]")) {
            const raw = cell.dataset.value;
            fields[cell.dataset.field] = raw === undefined ? cell.innerText.trim() : Number(raw);
        }
        return {...fields, ...row.dataset};
    })
"""

READ_CELLS = """
    rows => rows.flatMap(row => [...row.querySelectorAll("[data-column]")].map(
        cell => [row.dataset.row, cell.dataset.column, Number(cell.dataset.value)]))
"""
