"""A rack of mixed nodes: 8 A100, 16 T4 and 20 CPUs in 10 nodes, with noise and failing tasks."""

from __future__ import annotations

import pytest

from tests.dashboard.browser import Viewer
from tests.dashboard.conftest import RACK_TASKS
from tests.dashboard.test_figures import index_by
from tests.e2e.arena import RULES, ArenaProcess

NODES = ["big-0", "big-1", *(f"small-{n}" for n in range(4)), *(f"plain-{n}" for n in range(4))]
# Devices are numbered in the order of the platform's list.
TYPES = {"a100": (0, 8), "t4": (8, 24), "cpu": (24, 44)}

near = pytest.approx


def seconds_by_type(arena: ArenaProcess, run: str, scheduler: str) -> dict[str, float]:
    """The seconds of all tasks; an accelerator's part is on `device`, a CPU's on `cpu`."""

    def on(first: int, last: int) -> str:
        gpu = f"gpu_time * (device >= {first} AND device < {last})"
        return f"sum({gpu} + cpu_time * (cpu >= {first} AND cpu < {last}))"

    columns = ", ".join(f"{on(*numbers)} AS {name}_seconds" for name, numbers in TYPES.items())
    (row,) = arena.sql(
        f"SELECT {columns} FROM scheduler_results FINAL "
        f"WHERE run = '{run}' AND scheduler = '{scheduler}'"
    )
    return {name: row[f"{name}_seconds"] for name in TYPES}


def test_failed_tasks_are_shown_wherever_schedulers_are_ranked(
    viewer: Viewer, arena: ArenaProcess, rack: str
) -> None:
    viewer.open("arena", run=rack)
    rows = arena.sql(
        "SELECT scheduler, countIf(status = 'failed') AS failed FROM scheduler_results FINAL "
        f"WHERE run = '{rack}' GROUP BY scheduler"
    )
    stored = {row["scheduler"]: row["failed"] for row in rows}
    assert stored["gpu_only"] > 0
    assert stored["cpu_only"] == 0
    for widget in ("comparison", "ranking"):
        shown = index_by(viewer.table(widget), "scheduler")
        assert {name: row["failed"] for name, row in shown.items()} == stored
        badge = viewer.chart(widget).get_by_text(f"{stored['gpu_only']} failed")
        badge.first.wait_for()


def test_utilisation_is_by_type_by_node_and_by_device(viewer: Viewer, rack: str) -> None:
    viewer.open("scheduler", run=rack, scheduler="greedy")
    types = index_by(viewer.table("utilization"), "device")
    assert {name: row["devices"] for name, row in types.items()} == {"a100": 8, "t4": 16, "cpu": 20}
    choice = viewer.page.get_by_test_id("utilization-by")
    choice.select_option("node")
    assert [row["device"] for row in viewer.table("utilization")] == NODES
    choice.select_option("device")
    devices = viewer.table("utilization")
    assert len(devices) == 44
    for name, row in types.items():
        mean = [each["utilization"] for each in devices if f"/{name}_" in each["device"]]
        assert row["utilization"] == near(sum(mean) / len(mean), abs=1e-9)
    viewer.chart("utilization").get_by_test_id("heat-strip").wait_for()


def test_the_work_of_a_type_opens_to_its_devices(
    viewer: Viewer, arena: ArenaProcess, rack: str
) -> None:
    viewer.open("scheduler", run=rack, scheduler="greedy")
    widget = viewer.chart("devices")
    widget.locator("[data-type='t4'] button").click()
    assert widget.locator("[data-type='t4'] [data-device]").count() == 16
    work = viewer.table("devices")
    stored = seconds_by_type(arena, rack, "greedy")
    for name, seconds in stored.items():
        shown = sum(row["busy"] for row in work if f"/{name}_" in row["device"])
        assert shown == near(seconds, rel=1e-9)


def test_time_by_device_type(viewer: Viewer, arena: ArenaProcess, rack: str) -> None:
    viewer.open("arena", run=rack)
    shown = index_by(viewer.table("split"), "scheduler")
    for scheduler in RULES:
        for name, seconds in seconds_by_type(arena, rack, scheduler).items():
            assert shown[scheduler][f"type_{name}"] == near(seconds, rel=1e-9)


def test_the_heat_map_has_the_share_of_every_type(
    viewer: Viewer, arena: ArenaProcess, rack: str
) -> None:
    """A task counts for the type that worked on it longest."""
    viewer.open("arena", run=rack)
    cells = viewer.table("heatmap")
    assert sum(cell["tasks"] for cell in cells) == RACK_TASKS
    where = f"WHERE run = '{rack}' AND scheduler = 'oracle'"
    for name, (first, last) in TYPES.items():
        device = "if(gpu_time > cpu_time, device, cpu)"
        (stored,) = arena.sql(
            f"SELECT countIf({device} >= {first} AND {device} < {last}) AS tasks "
            f"FROM scheduler_results FINAL {where}"
        )
        shown = sum(cell["tasks"] * cell[f"type_{name}"] for cell in cells)
        # The gateway rounds shares to four digits.
        assert shown == near(stored["tasks"], abs=5e-5 * RACK_TASKS)


def test_a_task_has_its_expected_and_real_time_on_every_type(
    viewer: Viewer, arena: ArenaProcess, rack: str
) -> None:
    viewer.open("task", run=rack, task=7)
    times = index_by(viewer.table("task-physics"), "type")
    assert set(times) == set(TYPES)
    (stored,) = arena.sql(
        "SELECT time FROM scheduler_results FINAL "
        f"WHERE run = '{rack}' AND task_id = 7 AND scheduler = 'cpu_only'"
    )
    assert times["cpu"]["real_seconds"] == near(stored["time"], rel=1e-9)
    assert times["cpu"]["expected_seconds"] != times["cpu"]["real_seconds"]
    results = index_by(viewer.table("task-results"), "scheduler")
    node, kind, number = results["cpu_only"]["device"].split()
    assert (node in NODES, kind, number in ("0", "1")) == (True, "CPU", True)


def test_a_platform_is_chosen_in_the_form(viewer: Viewer, arena: ArenaProcess) -> None:
    viewer.open("new")
    page = viewer.page
    page.get_by_label("GPUs", exact=True).wait_for()
    page.get_by_role("radio", name="rack").check()
    page.get_by_label("GPUs", exact=True).wait_for(state="detached")
    page.get_by_text("10 nodes with 8 A100, 16 T4 and 20 CPU").wait_for()
    page.get_by_text("Sources and assumptions of rack").click()
    page.get_by_text("NVIDIA T4 data sheet").wait_for()
    page.get_by_label("Noise").fill("0.1")
    page.get_by_label("Arrivals").select_option("bursty")
    page.locator('[data-testid="spec-check"]:has-text("ready")').wait_for()
    page.locator('[data-testid="start-run"]:not([disabled])').click()
    page.wait_for_url(lambda url: "view=arena" in url)
    newest = arena.http.get("/api/runs", params={"limit": 1}).json()[0]
    spec = newest["spec"]
    arena.http.post("/api/simulation/stop", params={"run": newest["run"]})
    types = [device["type"] for device in spec["cluster"]["devices"]]
    assert types == ["a100", "t4", "cpu", "cpu", "cpu"]
    assert spec["physics"]["noise"] == 0.1
    assert spec["workload"]["arrivals"]["kind"] == "bursty"


def test_the_default_node_brings_the_short_form_back(viewer: Viewer) -> None:
    viewer.open("new")
    page = viewer.page
    page.get_by_role("radio", name="dgx").check()
    page.get_by_label("GPUs", exact=True).wait_for(state="detached")
    page.get_by_role("radio", name="default node CPUs").check()
    page.get_by_label("GPUs", exact=True).wait_for()
    page.get_by_text("a cluster of 1 CPU and 4 GPUs of 8,000 MB").wait_for()
