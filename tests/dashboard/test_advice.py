"""Asking for advice in the dashboard, and opening what the adversary found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.dashboard.browser import Viewer
from tests.dashboard.test_trace_drop import forget_refusals
from tests.e2e.arena import ArenaProcess

HEADER = "size,compute_intensity,memory_required,arrival_time\n"


def test_dropped_jobs_get_an_answer(viewer: Viewer) -> None:
    viewer.open("advice")
    page = viewer.page
    # One long job after the other: whatever happens to noise, the CPU alone is far slower.
    jobs = "".join(f"{900 + n % 7},0.9,100,{20 * n}\n" for n in range(60))
    page.get_by_test_id("advice-trace").locator("input").set_input_files(
        {"name": "jobs.csv", "mimeType": "text/csv", "buffer": (HEADER + jobs).encode()}
    )
    page.get_by_test_id("advice-trace").get_by_text("jobs.csv").wait_for()
    page.locator("[id='advice-schedulers']").fill("eft,cpu_only,oracle")
    page.get_by_role("button", name="Ask", exact=True).click()
    answer = viewer.widget("advice-requests").get_by_role("link", name="Use eft")
    answer.wait_for(timeout=240_000)
    answer.click()
    page.wait_for_url("**view=report**")
    report = page.frame_locator('[data-testid="report"]')
    report.get_by_text("the 60 jobs of jobs.csv").first.wait_for()
    report.get_by_text("What would change the answer").first.wait_for()
    # The script of `new_context` runs in the report as well, which may not store anything.
    viewer.errors = [error for error in viewer.errors if "sandboxed" not in error]


def test_what_is_wrong_is_said_at_its_field(viewer: Viewer) -> None:
    viewer.open("advice")
    page = viewer.page
    page.locator("[id='advice-load']").fill("0")
    page.locator("[id='advice-objective.turnaround']").fill("0.5x")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_test_id("problem-advice-load").get_by_text("greater than 0").wait_for()
    page.get_by_test_id("problem-advice-objective.turnaround").get_by_text("number").wait_for()
    forget_refusals(viewer)


def test_an_instance_of_the_adversary_opens_as_a_run(
    viewer: Viewer, arena: ArenaProcess, reports: Path
) -> None:
    hybrid = Path(sys.executable).with_name("hybrid")
    given = ["--victim", "round_robin", "--rival", "eft", "--minutes", "0.05"]
    folder = reports / "adversary-1118"
    subprocess.run([hybrid, "adversary", *given, "--out", folder], check=True, timeout=240)
    viewer.open("adversary")
    page = viewer.page
    cell = viewer.widget("adversary-matrix").get_by_title("round_robin against eft")
    cell.wait_for()
    assert float(cell.inner_text()) > 1
    page.get_by_label("Victim").select_option("round_robin")
    viewer.widget("adversary-instances").get_by_role("button", name="Open").first.click()
    page.wait_for_url("**view=arena**")
    newest = arena.http.get("/api/runs", params={"limit": 1}).json()[0]
    assert newest["spec"]["name"] == "adversary: round_robin against eft"
    record = arena.complete(newest["run"])
    turnaround = {name: figures["avg_turnaround"] for name, figures in record["schedulers"].items()}
    assert turnaround["round_robin"] > turnaround["eft"]
