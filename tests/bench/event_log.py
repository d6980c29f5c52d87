"""`make bench-log`: the Log view while 1,000 events a second are published on the bus, as JSON.

Half of the events say the same again, half are all different. Frames are counted in a real Chromium
by requestAnimationFrame, before and during; a page that keeps up draws 60 a second.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import nats
from playwright.sync_api import CDPSession, Page

from deploy.local.arena import find
from shared.messages import subjects
from shared.messages.events import Event
from tests.bench import report
from tests.bench.dashboard import FRAMES
from tests.bench.processes import running_arena
from tests.dashboard.browser import DESKTOP, chromium
from tests.e2e.arena import ArenaProcess

BURSTS_PER_SECOND = 20
LETTERS = "abcdefghijklmnop"


class Publisher:
    """Publishes events at a rate until it is stopped, in a thread of its own."""

    def __init__(self, arena: ArenaProcess, run: str, rate: int) -> None:
        running = find(arena.folder)
        assert running is not None
        self._environment = running.environment("generator")
        self._run, self._rate = run, rate
        self._stop = threading.Event()
        self.published = 0

    def _event(self, number: int) -> Event:
        # Words without digits: numbers do not tell events apart.
        word = (
            "".join(LETTERS[int(digit, 16)] for digit in f"{number:x}") if number % 2 else "again"
        )
        return Event(kind="bench", service="bench", run=self._run, message=f"event {word}")

    async def _publish(self) -> None:
        settings = self._environment
        client = await nats.connect(
            settings["HYBRID_NATS_URL"],
            user=settings["HYBRID_NATS_USER"],
            password=settings["HYBRID_NATS_PASSWORD"],
        )
        subject = subjects.event("bench")
        began, numbers = time.monotonic(), itertools.count()
        while not self._stop.is_set():
            due = int((time.monotonic() - began) * self._rate)
            while self.published < due:
                await client.publish(subject, self._event(next(numbers)).model_dump_json().encode())
                self.published += 1
            await asyncio.sleep(1 / BURSTS_PER_SECOND)
        await client.close()

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=lambda: asyncio.run(self._publish()))
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()


def frames(page: Page, session: CDPSession, seconds: float) -> dict[str, float]:
    """Also the CPU time of the page's thread, per second: the arena beside it needs
    the cores, too."""
    began, busy = time.monotonic(), busy_seconds(session)
    times = page.evaluate(f"seconds => ({FRAMES})(seconds)", seconds)
    share = (busy_seconds(session) - busy) / (time.monotonic() - began)
    return {
        "page_busy_share": round(share, 3),
        "frames_per_second": round(1000 / statistics.mean(times), 1),
        "frame_ms_p95": round(statistics.quantiles(times, n=20)[-1], 1),
        "frame_ms_max": round(max(times), 1),
    }


def busy_seconds(session: CDPSession) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")


def watch(arena: ArenaProcess, run: str, rate: int, seconds: float) -> dict[str, Any]:
    with chromium() as browser:
        page = browser.new_page(viewport=DESKTOP)
        page.goto(f"{arena.announced['url']}/?view=log&run={run}")
        page.get_by_test_id("event").first.wait_for()
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        report.progress("before")
        before = frames(page, session, seconds)
        publisher = Publisher(arena, run, rate)
        report.progress(f"{rate} events a second")
        with publisher.running():
            page.locator('[data-kind="bench"]').first.wait_for()
            began, published = time.monotonic(), publisher.published
            during = frames(page, session, seconds)
            took = time.monotonic() - began
            real = (publisher.published - published) / took
        shown = page.get_by_test_id("event").count()
    return {
        "events_per_second": round(real),
        "published": publisher.published,
        "lines_shown": shown,
        "before": before,
        "during": during,
    }


def table(measured: dict[str, Any]) -> report.Table:
    rows = {
        "CPU of the page's thread": "{page_busy_share:.0%} of a core",
        "frames a second": "{frames_per_second}",
        "a frame, p95": "{frame_ms_p95} ms",
        "the longest frame": "{frame_ms_max} ms",
    }
    before, during = measured["before"], measured["during"]
    return [
        ("", "before", f"at {measured['events_per_second']:,} events/s"),
        *((name, text.format_map(before), text.format_map(during)) for name, text in rows.items()),
    ]


def main() -> None:
    parser = report.parser("bench-log", __doc__ or "")
    parser.add_argument("--rate", type=int, default=1000, help="events per second")
    parser.add_argument("--seconds", type=float, default=10)
    given = parser.parse_args()
    with running_arena("--idle") as arena:
        run = arena.start_run(tasks=500, pace="max", schedulers=["greedy", "oracle"])
        arena.complete(run)
        measured = watch(arena, run, given.rate, given.seconds)
    report.publish("bench-log", measured, table(measured), write=given.write)


if __name__ == "__main__":
    main()
