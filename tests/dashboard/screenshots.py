"""`make screenshots`: every view, wide and narrow, dark and light, with a real run behind it."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from tests.dashboard.browser import DESK, PHONE, chromium
from tests.e2e.arena import ArenaProcess

VIEWS = ("arena", "scheduler", "history", "log", "task", "compare", "new")
WATCHED_SECONDS = 45


def main() -> None:
    parser = argparse.ArgumentParser(prog="make screenshots", description=__doc__)
    parser.add_argument("--to", type=Path, default=Path("screenshots"), help="folder")
    parser.add_argument("--views", nargs="*", default=VIEWS)
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hybrid-screenshots-") as folder:
        arena = ArenaProcess(Path(folder) / "arena", "--idle")
        try:
            everybody = {row["name"] for row in arena.http.get("/api/schedulers").json()}
            earlier = arena.start_run(tasks=3000, pace="max", seed=3, schedulers=sorted(everybody))
            arena.complete(earlier)
            run = arena.start_run(pace=40, seed=7, schedulers=sorted(everybody))
            arena.wait_for(run, lambda seen: seen["tasks_processed"] > 40 * WATCHED_SECONDS)
            parameters = {
                "scheduler": f"run={run}&scheduler=rl_agent",
                "task": f"run={run}&task=1200",
                "compare": f"a={earlier}&b={run}",
            }
            with chromium() as browser:
                for view in given.views:
                    address = f"{arena.announced['url']}/?view={view}"
                    take(browser, f"{address}&{parameters.get(view, f'run={run}')}", given.to, view)
        finally:
            arena.stop()


def take(browser: Browser, address: str, folder: Path, view: str) -> None:
    for size in (DESK, PHONE):
        for theme in ("dark", "light"):
            page = browser.new_page(viewport=size, color_scheme=theme)  # type: ignore[arg-type]
            page.add_init_script(f"localStorage.setItem('hybrid.theme', '{theme}')")
            page.goto(address)
            page.wait_for_timeout(2500)
            # As tall as the page: charts out of sight are not drawn.
            height = page.evaluate("document.documentElement.scrollHeight")
            page.set_viewport_size({"width": size["width"], "height": height})
            page.wait_for_timeout(2000)
            path = folder / f"{view}-{size['width']}-{theme}.png"
            page.screenshot(path=path)
            page.close()
            print(path)


if __name__ == "__main__":
    main()
