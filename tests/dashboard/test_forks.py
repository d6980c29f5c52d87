"""Forking a run from a task's page and from the run's, and what differs from there on."""

from __future__ import annotations

from typing import Any

from tests.dashboard.browser import Viewer
from tests.dashboard.test_trace_drop import forget_refusals
from tests.e2e.arena import ArenaProcess

AT = 700


def test_a_fork_from_a_task_opens_its_comparison(
    viewer: Viewer, arena: ArenaProcess, run: str
) -> None:
    viewer.open("task", run=run, task=AT)
    page = viewer.page
    form = page.get_by_test_id("fork-form")
    form.wait_for()
    assert page.locator("#fork-at").input_value() == str(AT)
    page.locator("[id='fork-cluster.gpus']").fill("6")
    page.locator("#fork-lines").fill("schedulers=eft,greedy")
    page.get_by_test_id("fork-start").click()
    page.get_by_test_id("compare-b").wait_for()
    newest = arena.http.get("/api/runs", params={"limit": 1}).json()[0]
    assert newest["fork"]["run"] == run
    assert newest["fork"]["at"] == AT
    assert newest["spec"]["cluster"]["gpus"] == 6
    arena.complete(newest["run"])
    table = page.get_by_role("table", name="Both runs since the fork")
    row = table.locator("[data-scheduler=eft]")

    def is_shown() -> bool:
        """As the gateway has it, which remembers an answer for a moment."""
        answer = arena.http.get(f"/api/runs/{newest['run']}/comparison").json()
        compared = answer["schedulers"].get("eft", {})
        both = {str(figures["avg_turnaround"]) for figures in _runs(compared)}
        return len(both) == 2 and both <= set(_values(row))

    viewer.wait_until(is_shown)


def test_a_wrong_value_is_shown_at_its_field(viewer: Viewer, run: str) -> None:
    viewer.open("history", run=run)
    page = viewer.page
    page.locator("#fork-at").fill("5")
    page.locator("[id='fork-cluster.gpus']").fill("0")
    page.get_by_test_id("fork-start").click()
    form = page.get_by_test_id("fork-form")
    form.get_by_text("greater than or equal to 1").wait_for()
    forget_refusals(viewer)


def _runs(compared: dict[str, Any]) -> list[dict[str, Any]]:
    return [compared[run] for run in ("figures", "other") if run in compared]


def _values(row: object) -> list[str]:
    script = "all => all.map(each => each.dataset.value)"
    found: list[str] = row.locator("[data-value]").evaluate_all(script)  # type: ignore[attr-defined]
    return found
