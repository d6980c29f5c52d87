"""A real Chromium, and what one reads off the page."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

PATIENCE = 120.0  # seconds: the machine may be busy

DESK = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


@contextmanager
def chromium() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    assert found, "no Chromium here: make browser"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


class Viewer:
    """A page, with what went wrong on it."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE * 1000)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def open(self, view: str, **parameters: Any) -> None:
        """Unless that is what it shows."""
        query = "&".join(f"{name}={value}" for name, value in {"view": view, **parameters}.items())
        if self.page.url != f"{self.url}/?{query}":
            self.page.goto(f"{self.url}/?{query}")

    def widget(self, name: str) -> Any:
        return self.page.get_by_test_id(f"widget-{name}")

    def table(self, name: str) -> list[dict[str, Any]]:
        """A widget's rows as it shows them in its table: attributes of the row, and raw values."""
        widget = self.widget(name)
        widget.locator(f"[data-testid='table-toggle-{name}'], tbody").first.wait_for()
        self._toggle(name, "true")
        widget.locator("tbody tr td").first.wait_for()
        rows: list[dict[str, Any]] = widget.locator("tbody tr").evaluate_all(READ_ROWS)
        return rows

    def drawing(self, name: str) -> Any:
        """The widget, not as a table."""
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
        found = {(row, column): value for row, column, value in cells}
        assert len(found) == len(cells)
        return found

    def wait_until(
        self,
        condition: Callable[[], bool],
        seen: Callable[[], Any] | None = None,
        seconds: float = PATIENCE,
    ) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not reached; seen: {seen() if seen else ''}"
            self.page.wait_for_timeout(200)

    def wait_for_state(self, state: str) -> None:
        self.page.locator(f'[data-testid="connection"][data-state="{state}"]').wait_for()


READ_ROWS = """
    rows => rows.map(row => {
        const found = {};
        for (const cell of row.querySelectorAll("[data-field]")) {
            const raw = cell.dataset.value;
            found[cell.dataset.field] = raw === undefined ? cell.innerText.trim() : Number(raw);
        }
        return {...found, ...row.dataset};
    })
"""

READ_CELLS = """
    rows => rows.flatMap(row => [...row.querySelectorAll("[data-column]")].map(
        cell => [row.dataset.row, cell.dataset.column, Number(cell.dataset.value)]))
"""
