"""`make bench-dashboard`: an hour of live updates fed to the page in a few minutes, as JSON.

The page belongs to a real arena; its WebSocket is fed from outside, with a real snapshot that is
moved on by one tick at a time. Memory is the JavaScript heap after a collection; frame times are
those of ten seconds at the usual two updates a second, before and after.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
from typing import Any

from playwright.sync_api import CDPSession, Page, WebSocketRoute

from shared.domain.schedulers import BUILT_IN
from tests.bench import report
from tests.bench.processes import running_arena
from tests.dashboard.browser import DESKTOP, chromium
from tests.e2e.arena import ArenaProcess

UPDATES_PER_SECOND = 2
FRAMES = """
    seconds => new Promise(done => {
        const times = [];
        let last = performance.now();
        const end = last + seconds * 1000;
        const step = now => {
            times.push(now - last);
            last = now;
            now < end ? requestAnimationFrame(step) : done(times);
        };
        requestAnimationFrame(step);
    })
"""


class Feed:
    """A proxy of the WebSocket: forwards the snapshot, then sends updates of its own."""

    def __init__(self, page: Page) -> None:
        self._route: WebSocketRoute | None = None
        self.latest: dict[str, Any] | None = None
        page.route_web_socket("**/ws*", self._connected)

    def _connected(self, route: WebSocketRoute) -> None:
        self._route = route
        server = route.connect_to_server()
        server.on_message(lambda text: self._heard(route, text))

    def _heard(self, route: WebSocketRoute, text: str | bytes) -> None:
        message = json.loads(text)
        if message["type"] == "simulation_update" and self.latest is None:
            self.latest = message
            route.send(text)

    def tick(self) -> None:
        update = self.latest = moved_on(self.latest)
        self._route.send(json.dumps(update))
        if update["sequence"] % 20 == 0:
            note = {"kind": "model", "service": "trainer", "run": update["run"]}
            message = f"hybrid_ml version {update['sequence'] // 20} shipped"
            self._route.send(
                json.dumps({"type": "notification", "at": update["at"], "message": message} | note)
            )


def moved_on(update: dict[str, Any]) -> dict[str, Any]:
    """The next update of a run at 20 tasks a second."""
    after = copy.deepcopy(update)
    after.pop("spec", None)
    after.pop("notifications", None)
    after |= {
        "snapshot": False,
        "state": "running",
        "at": update["at"] + 1 / UPDATES_PER_SECOND,
        "sequence": update["sequence"] + 1,
        "tasks_sent": update["tasks_sent"] + 10,
        "tasks_processed": update["tasks_processed"] + 10,
    }
    if after["task"]:
        after["task"]["id"] += 10
    for row in after["comparison"]:
        row["tasks"] += 10
        for metric in ("time", "energy", "cost"):
            row[f"total_{metric}"] += 10 * row[f"avg_{metric}"]
    return after


def measure(page: Page, session: CDPSession, feed: Feed) -> dict[str, Any]:
    session.send("HeapProfiler.collectGarbage")
    counted = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    page.evaluate(f"window.frames_seen = ({FRAMES})(10)")
    for _ in range(10 * UPDATES_PER_SECOND):
        feed.tick()
        page.wait_for_timeout(1000 / UPDATES_PER_SECOND)
    frames = page.evaluate("window.frames_seen")
    return {
        "heap_mib": round(counted["JSHeapUsedSize"] / 2**20, 2),
        "dom_nodes": int(counted["Nodes"]),
        "listeners": int(counted["JSEventListeners"]),
        "frame_ms_mean": round(statistics.mean(frames), 2),
        "frame_ms_p95": round(statistics.quantiles(frames, n=20)[-1], 2),
        "frame_ms_max": round(max(frames), 2),
    }


def main() -> None:
    parser = report.parser("bench-dashboard", __doc__ or "")
    parser.add_argument("--minutes", type=float, default=60, help="of updates")
    parser.add_argument("--speed", type=float, default=30, help="times as fast as in life")
    given = parser.parse_args()
    with running_arena("--idle") as arena:
        run = arena.start_run(tasks=2000, pace="max", schedulers=BUILT_IN)
        arena.complete(run)
        measured = watch(arena, run, given)
    report.publish("bench-dashboard", measured, table(measured), write=given.write)


def table(found: dict[str, Any]) -> report.Table:
    before, after = found["before"], found["after"]
    updates = f"after {found['updates']:,} updates in {found['seconds']:.0f} s"
    rows = {
        "memory of the page": "{heap_mib:.1f} MiB",
        "elements": "{dom_nodes:,}",
        "a frame, on average": "{frame_ms_mean} ms",
        "a frame, p95": "{frame_ms_p95} ms",
    }
    return [
        ("", "before", updates),
        *((name, text.format_map(before), text.format_map(after)) for name, text in rows.items()),
    ]


def watch(arena: ArenaProcess, run: str, given: argparse.Namespace) -> dict[str, Any]:
    updates = int(given.minutes * 60 * UPDATES_PER_SECOND)
    with chromium() as browser:
        page = browser.new_page(viewport=DESKTOP)
        feed = Feed(page)
        page.goto(f"{arena.announced['url']}/?view=arena&run={run}")
        page.get_by_test_id("widget-comparison").wait_for()
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        for _ in range(40):  # until everything has been drawn once or twice
            feed.tick()
            page.wait_for_timeout(50)
        report.progress("before")
        before = measure(page, session, feed)
        report.progress(f"{updates} updates at {given.speed:.0f} times the speed")
        began = time.monotonic()
        for _ in range(updates):
            feed.tick()
            page.wait_for_timeout(1000 / UPDATES_PER_SECOND / given.speed)
        took = time.monotonic() - began
        report.progress("after")
        after = measure(page, session, feed)
    return {"updates": updates, "seconds": round(took, 1), "before": before, "after": after}


if __name__ == "__main__":
    main()
