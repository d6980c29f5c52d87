"""The page under its content security policy, and what it shows of garbage on the bus."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import nats
import pytest

from deploy.local.arena import find
from tests.dashboard.browser import Viewer
from tests.e2e.arena import ArenaProcess

# Redoc asks a stranger for a picture; it is the policy that it gets none.
REDOC_LOGO = "cdn.redoc.ly/redoc/logo-mini.svg"


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
def test_the_documents_of_the_interface_work_under_the_policy(viewer: Viewer, path: str) -> None:
    viewer.page.goto(f"{viewer.url}{path}")
    viewer.page.get_by_text("Hybrid ML Scheduler").first.wait_for()
    viewer.page.get_by_text("/api/runs").first.wait_for()
    viewer.complaints[:] = [said for said in viewer.complaints if REDOC_LOGO not in said]


def test_a_breach_of_the_policy_is_a_complaint(viewer: Viewer, run: str) -> None:
    """So every test with a viewer fails on one."""
    viewer.open("arena", run=run)
    viewer.widget("race").wait_for()
    viewer.page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.breached = true";
            document.body.append(script);
        }"""
    )
    viewer.wait_until(lambda: bool(viewer.complaints))
    assert viewer.page.evaluate("window.breached") is None
    (complaint,) = viewer.complaints
    assert "Content Security Policy" in complaint
    viewer.complaints.clear()


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

    with ThreadPoolExecutor() as elsewhere:  # the browser's loop is in this thread
        elsewhere.submit(asyncio.run, publish()).result()
    viewer.open("log")
    widget = viewer.widget("dead-letters")
    widget.get_by_text("tasks.nobody-knows").wait_for()
    widget.get_by_text("not an Arrow message").wait_for()
    widget.get_by_text("hybrid rejected show").wait_for()
    newest = arena.http.get("/api/rejected").json()["letters"][0]["sequence"]
    arena.http.delete("/api/rejected", params={"up_to": newest}).raise_for_status()
    widget.get_by_text("nothing was rejected").wait_for()
