"""`make screenshots`: every view, wide and narrow, dark and light, with a real run behind it."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from tests.dashboard.browser import DESKTOP, PHONE, Viewer, chromium, new_context
from tests.e2e.arena import ArenaProcess

VIEWS = ("arena", "scheduler", "history", "log", "task", "compare", "new")
TASKS = 1800
PACE = 40


def main() -> None:
    parser = argparse.ArgumentParser(prog="make screenshots", description=__doc__)
    parser.add_argument("--to", type=Path, default=Path("screenshots"), help="folder")
    parser.add_argument("--views", nargs="*", default=VIEWS)
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hybrid-screenshots-") as folder:
        arena = ArenaProcess(Path(folder) / "arena", "--idle")
        try:
            schedulers = sorted(row["name"] for row in arena.http.get("/api/schedulers").json())
            earlier = arena.start_run(tasks=3000, pace="max", seed=3, schedulers=schedulers)
            arena.complete(earlier, timeout=600)
            run = arena.start_run(pace=PACE, seed=7, schedulers=schedulers)
            arena.wait_for(run, lambda status: status["tasks_processed"] > TASKS, timeout=600)
            parameters: dict[str, dict[str, object]] = {
                "scheduler": {"run": run, "scheduler": "rl_agent"},
                "task": {"run": run, "task": 1200},
                "compare": {"a": earlier, "b": run},
            }
            with chromium() as browser:
                for view in options.views:
                    query = parameters.get(view, {"run": run})
                    take(browser, arena.announced["url"], view, query, options.to)
        finally:
            arena.stop()


def take(browser: Browser, url: str, view: str, query: dict[str, object], folder: Path) -> None:
    for size in (DESKTOP, PHONE):
        for theme in ("dark", "light"):
            context = new_context(browser, size, color_scheme=theme)
            context.add_init_script(f"localStorage.setItem('hybrid.theme', '{theme}')")
            viewer = Viewer(context.new_page(), url)
            viewer.open(view, **query)
            viewer.wait_until_drawn()
            # As tall as the page: charts outside the window are not drawn.
            height = viewer.page.evaluate("document.documentElement.scrollHeight")
            viewer.page.set_viewport_size({"width": size["width"], "height": height})
            viewer.wait_until_drawn()
            path = folder / f"{view}-{size['width']}-{theme}.png"
            viewer.page.screenshot(path=path)
            context.close()
            print(path)


if __name__ == "__main__":
    main()
