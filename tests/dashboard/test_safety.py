"""The page under its content security policy, and how it shows dead letters."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import nats
import pytest

from deploy.local.arena import find
from tests.dashboard.browser import Viewer
from tests.e2e.arena import ArenaProcess

# Redoc loads its logo from a foreign host, which the policy blocks.
REDOC_LOGO = "cdn.redoc.ly/redoc/logo-mini.svg"


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
def test_the_api_documentation_works_under_the_policy(viewer: Viewer, path: str) -> None:
    viewer.page.goto(f"{viewer.url}{path}")
    viewer.page.get_by_text("Hybrid ML Scheduler").first.wait_for()
    viewer.page.get_by_text("/api/runs").first.wait_for()
    viewer.errors[:] = [error for error in viewer.errors if REDOC_LOGO not in error]


def test_a_violation_of_the_policy_is_a_console_error(viewer: Viewer, run: str) -> None:
    """So every test with a viewer fails on a violation."""
    viewer.open("arena", run=run)
    viewer.widget("comparison").wait_for()
    viewer.page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.violated = true";
            document.body.append(script);
        }"""
    )
    viewer.wait_until(lambda: bool(viewer.errors))
    assert viewer.page.evaluate("window.violated") is None
    (error,) = viewer.errors
    assert "Content Security Policy" in error
    viewer.errors.clear()


def test_dead_letters_are_listed_with_what_to_do(viewer: Viewer, arena: ArenaProcess) -> None:
    running = find(arena.folder)
    assert running is not None
    environment = running.environment("generator")

    async def publish() -> None:
        client = await nats.connect(
            environment["HYBRID_NATS_URL"],
            user=environment["HYBRID_NATS_USER"],
            password=environment["HYBRID_NATS_PASSWORD"],
            inbox_prefix="_INBOX.generator",
        )
        await client.publish("tasks.nobody-knows", b"garbage")
        await client.drain()

    with ThreadPoolExecutor() as pool:  # Playwright's event loop is in this thread
        pool.submit(asyncio.run, publish()).result()
    viewer.open("log")
    widget = viewer.widget("dead-letters")
    widget.get_by_text("tasks.nobody-knows").wait_for()
    widget.get_by_text("not an Arrow message").wait_for()
    widget.get_by_text("hybrid rejected show").wait_for()
    newest = arena.http.get("/api/rejected").json()["letters"][0]["sequence"]
    arena.http.delete("/api/rejected", params={"up_to": newest}).raise_for_status()
    widget.get_by_text("no message was rejected").wait_for()
