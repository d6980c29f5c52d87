"""Why learners chose what they chose, how far their times were off, and what they minimise."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.dashboard.browser import Viewer
from tests.dashboard.conftest import wait_until_stored
from tests.e2e.arena import ArenaProcess

TASKS = 600
SCHEDULERS = ("bandit", "eft", "predictive")
DEVICES = ("gpu_0", "gpu_1", "gpu_2", "gpu_3", "cpu_0")
LEARNING = {"pretrain_tasks": 200, "lockstep_tasks": 150, "predictive": {"explore": 0.05}}

near = pytest.approx


@pytest.fixture(scope="module")
def learned(arena: ArenaProcess) -> str:
    """A completed run in lockstep."""
    run = arena.start_run(tasks=TASKS, pace="max", seed=5, schedulers=SCHEDULERS, learning=LEARNING)
    arena.complete(run, timeout=360)
    wait_until_stored(arena, run, TASKS, len(SCHEDULERS))
    return run


def result(arena: ArenaProcess, run: str, scheduler: str, condition: str) -> dict[str, Any]:
    row, *_ = arena.sql(
        f"SELECT * FROM scheduler_results FINAL WHERE run = '{run}' "
        f"AND scheduler = '{scheduler}' AND {condition} ORDER BY task_id DESC LIMIT 1"
    )
    return row


@pytest.mark.parametrize("explored", [False, True])
def test_a_task_page_says_why_a_learner_chose_its_device(
    viewer: Viewer, arena: ArenaProcess, learned: str, explored: bool
) -> None:
    row = result(arena, learned, "predictive", f"explored = {str(explored).lower()}")
    viewer.open("task", run=learned, task=row["task_id"])
    choice = viewer.widget("task-choices").locator("[data-choice-of=predictive]")
    choice.wait_for()
    verdict = choice.get_by_test_id("verdict").inner_text()
    assert ("explored, with probability" if explored else "the lowest score") in verdict
    device = row["device"] if row["gpu_time"] > 0 else row["cpu"]
    for number, name in enumerate(DEVICES):
        shown = choice.locator(f"tr[data-device={name}]")
        cells = {
            field: float(shown.locator(f"[data-field={field}]").get_attribute("data-value"))
            for field in ("score", "predicted", "queued")
        }
        assert cells["score"] == near(row["scores"][number])
        assert cells["predicted"] == near(row["predicted"][number == 4])
        assert cells["queued"] >= 0
        assert shown.get_attribute("data-chosen") == str(number == device).lower()
    (model,) = arena.sql(
        f"SELECT metrics FROM models FINAL WHERE run = '{learned}' AND name = 'predictive' "
        f"AND shipped AND version = {row['model_version']}"
    )
    price = choice.locator("[data-figure=price_gpu]")
    assert float(price.get_attribute("data-value")) == near(
        json.loads(model["metrics"])["price_gpu"]
    )
    # The bandit says what it compared, eft does not.
    names = (
        viewer.widget("task-choices")
        .locator("[data-choice-of]")
        .evaluate_all("all => all.map((each) => each.dataset.choiceOf)")
    )
    assert names == ["bandit", "predictive"]


def test_errors_of_expected_times_are_shown_by_device_type(
    viewer: Viewer, arena: ArenaProcess, learned: str
) -> None:
    viewer.open("scheduler", run=learned, scheduler="predictive")
    shown = {row["type"]: row for row in viewer.table("errors")}
    counts = arena.sql(
        "SELECT if(gpu_time > 0, 'gpu', 'cpu') AS type, count() AS tasks FROM scheduler_results "
        f"FINAL WHERE run = '{learned}' AND scheduler = 'predictive' AND expected_time > 0 "
        "GROUP BY type"
    )
    assert {kind: row["tasks"] for kind, row in shown.items()} == {
        row["type"]: row["tasks"] for row in counts
    }


def test_learners_follow_the_weights(viewer: Viewer, arena: ArenaProcess, learned: str) -> None:
    viewer.open("arena", run=learned, weights="100,0,50,0")
    follow = viewer.page.get_by_test_id("follow-weights")
    follow.wait_for()
    assert follow.get_attribute("aria-disabled") == "true"
    assert "over" in follow.get_attribute("title")
    run = arena.start_run(pace=1, schedulers=SCHEDULERS, learning=LEARNING)
    arena.wait_for(run, lambda status: status["tasks_processed"] > 1)
    viewer.open("arena", run=run, weights="100,0,50,0")
    objective = viewer.page.get_by_test_id("objective")
    viewer.wait_until(lambda: objective.inner_text() == "Learners minimise turnaround")
    assert follow.get_attribute("aria-disabled") == "false"
    follow.focus()
    viewer.page.keyboard.press("Enter")
    wanted = "turnaround + 0.5 × energy"
    viewer.page.get_by_test_id("toast").filter(has_text=wanted).wait_for()
    viewer.wait_until(lambda: objective.inner_text() == f"Learners minimise {wanted}")
    spec = arena.http.get(f"/api/runs/{run}").json()["spec"]
    assert spec["objective"] == {"turnaround": 1, "energy": 0.5, "cost": 0}
    viewer.wait_until(lambda: "already" in follow.get_attribute("title"))
    arena.http.post("/api/simulation/stop", params={"run": run})
