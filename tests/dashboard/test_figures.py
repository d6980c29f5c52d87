"""Each widget shows the figures that a direct query of ClickHouse gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from shared.domain.schedulers import REFERENCES
from tests.dashboard.browser import READ_ROWS, Viewer
from tests.dashboard.conftest import ALL_SCHEDULERS, TASKS, open_viewer
from tests.e2e.arena import ArenaProcess

WINDOW = 1000  # the newest tasks, which the analysis covers
FIRST = TASKS - WINDOW

# The WebSocket rounds to six significant digits.
LIVE = 5e-6

near = pytest.approx


@pytest.fixture(scope="module")
def viewer(browser: Browser, arena: ArenaProcess) -> Iterator[Viewer]:
    """One page for all tests: the run is over, and no test changes what another one reads."""
    with open_viewer(browser, arena) as viewer:
        yield viewer


def index_by(rows: list[dict[str, Any]], key: str) -> dict[Any, dict[str, Any]]:
    indexed = {row[key]: row for row in rows}
    assert len(indexed) == len(rows)
    return indexed


def totals(arena: ArenaProcess, run: str) -> dict[str, dict[str, Any]]:
    # Rounded: the order in which ClickHouse adds up changes the last digits, and ties with them.
    rows = arena.sql(
        "SELECT scheduler, count() AS tasks, round(sum(r.time), 9) AS time, sum(energy) AS energy, "
        "sum(cost) AS cost, sum(wait) AS wait, max(finish) AS makespan, "
        "round(sum(r.turnaround), 9) AS turnaround, "
        f"arraySort(groupArray(r.turnaround))[{TASKS * 99 // 100}] AS p99, "
        "countIf(status = 'failed') AS failed, "
        "countIf(gpu_fraction > 0) AS gpu_tasks "
        f"FROM scheduler_results AS r FINAL WHERE run = '{run}' GROUP BY scheduler"
    )
    return index_by(rows, "scheduler")


def test_the_comparison_matches_the_stored_results(
    viewer: Viewer, arena: ArenaProcess, run: str
) -> None:
    viewer.open("arena", run=run)
    shown = index_by(viewer.table("comparison"), "scheduler")
    stored = totals(arena, run)
    assert set(shown) == set(ALL_SCHEDULERS)
    for name, row in shown.items():
        expected = stored[name]
        assert row["tasks"] == expected["tasks"] == TASKS
        for metric in ("time", "energy", "cost", "wait", "turnaround"):
            assert row[f"avg_{metric}"] == near(expected[metric] / TASKS, rel=LIVE)
        # The gateway's quantiles come from a sketch.
        assert row["turnaround_p99"] == near(expected["p99"], rel=0.01)
        assert row["failed"] == expected["failed"]
        assert row["vs_oracle"] == near(expected["time"] / stored["oracle"]["time"], rel=LIVE)


@pytest.mark.parametrize("measure", ["turnaround", "time"])
def test_the_race_is_sorted_by_turnaround_or_by_execution_time(
    viewer: Viewer, arena: ArenaProcess, run: str, measure: str
) -> None:
    viewer.open("arena", run=run)
    race = viewer.chart("comparison")
    race.get_by_test_id("race-by").select_option(measure)
    stored = totals(arena, run)
    expected = sorted(stored, key=lambda name: (stored[name][measure], name))

    def bars() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = race.locator("[data-place]").evaluate_all(READ_ROWS)
        return sorted(rows, key=lambda row: int(row["place"]))

    viewer.wait_until(lambda: [bar["scheduler"] for bar in bars()] == expected, bars)
    for bar in bars():
        own = stored[bar["scheduler"]]
        assert bar[f"avg_{measure}"] == near(own[measure] / TASKS, rel=LIVE)
        assert bar["avg_wait"] == near(own["wait"] / TASKS, rel=LIVE)
    assert race.get_by_text("reference").count() == len(REFERENCES)


def test_the_choice_of_the_race_is_in_the_address(viewer: Viewer, run: str) -> None:
    viewer.open("arena", run=run, by="time")
    assert viewer.chart("comparison").get_by_test_id("race-by").input_value() == "time"
    assert viewer.widget("wins").get_by_test_id("wins-by").input_value() == "time"


MEASURES = ("turnaround", "time", "energy", "cost")


@pytest.mark.parametrize("metric", MEASURES)
def test_the_ranking_follows_the_weights(
    viewer: Viewer, arena: ArenaProcess, run: str, metric: str
) -> None:
    viewer.open("arena", run=run)
    viewer.page.get_by_test_id(f"weight-{metric}").press("End")
    for other in set(MEASURES) - {metric}:
        viewer.page.get_by_test_id(f"weight-{other}").press("Home")
    stored = totals(arena, run)
    least = min(row[metric] for row in stored.values())
    expected = {name: near(row[metric] / least, rel=LIVE) for name, row in stored.items()}

    def ranking() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = (
            viewer.widget("ranking").locator("[data-rank]").evaluate_all(READ_ROWS)
        )
        return rows

    viewer.wait_until(
        lambda: {row["scheduler"]: row["score"] for row in ranking()} == expected, ranking
    )
    first = next(row["scheduler"] for row in ranking() if row["rank"] == "1")
    competitors = set(stored) - set(REFERENCES)
    assert stored[first][metric] == min(stored[name][metric] for name in competitors)


def test_the_pareto_front_is_marked(viewer: Viewer, arena: ArenaProcess, run: str) -> None:
    viewer.open("arena", run=run)
    shown = index_by(viewer.table("ranking"), "scheduler")
    stored = totals(arena, run)

    def dominated(name: str) -> bool:
        mine = [stored[name][metric] for metric in MEASURES]
        for other in set(stored) - set(REFERENCES):
            theirs = [stored[other][metric] for metric in MEASURES]
            no_worse = all(a <= b for a, b in zip(theirs, mine, strict=True))
            if no_worse and theirs != mine:
                return True
        return False

    assert {name: row["pareto"] for name, row in shown.items()} == {
        name: "no" if name in REFERENCES or dominated(name) else "yes" for name in ALL_SCHEDULERS
    }


@pytest.mark.parametrize("measure", ["turnaround", "time"])
def test_wins_and_losses(viewer: Viewer, arena: ArenaProcess, run: str, measure: str) -> None:
    viewer.open("arena", run=run, by=measure)
    name = {"turnaround": "turnaround", "time": "execution time"}[measure]
    viewer.widget("wins").get_by_role("heading", name=f"Tasks won by {name}").wait_for()
    shown = viewer.matrix("wins")
    pairs = arena.sql(
        "SELECT a.scheduler AS one, b.scheduler AS other, "
        f"countIf(a.{measure} < b.{measure} - 1e-9) / count() AS won "
        f"FROM (SELECT * FROM scheduler_results FINAL WHERE run = '{run}') AS a "
        f"JOIN (SELECT * FROM scheduler_results FINAL WHERE run = '{run}') AS b USING (task_id) "
        f"WHERE one != other AND task_id >= {FIRST} GROUP BY one, other"
    )
    expected = {(row["one"], row["other"]): row["won"] for row in pairs}
    assert len(shown) == len(expected) == len(ALL_SCHEDULERS) * (len(ALL_SCHEDULERS) - 1)
    for pair, won in shown.items():
        assert won == near(expected[pair], abs=1e-9)


def test_totals_so_far(viewer: Viewer, arena: ArenaProcess, run: str) -> None:
    viewer.open("arena", run=run)
    stored = totals(arena, run)
    shown = index_by(viewer.table("cumulative"), "scheduler")
    assert set(shown) == set(stored)
    for name, row in shown.items():
        assert row["tasks"] == TASKS
        for metric in ("time", "energy", "cost", "turnaround"):
            assert row[f"total_{metric}"] == near(stored[name][metric], rel=1e-9)


def test_utilisation_of_every_device(viewer: Viewer, arena: ArenaProcess, run: str) -> None:
    """The share of the last 60 simulated seconds in which a device was at work."""
    viewer.open("scheduler", run=run, scheduler="greedy")
    shown = index_by(viewer.table("utilization"), "device")
    (clock,) = arena.sql(f"SELECT max(arrival_time) AS at FROM tasks FINAL WHERE run = '{run}'")
    end, start = clock["at"], clock["at"] - 60
    where = f"FROM scheduler_results FINAL WHERE run = '{run}' AND scheduler = 'greedy'"

    def busy(kind: str) -> str:
        begin, length = f"{kind}_start", f"{kind}_time"
        return (
            f"sum(greatest(0, least({begin} + {length}, {end}) - greatest({begin}, {start}))) / 60"
        )

    on_gpus = arena.sql(
        f"SELECT device, {busy('gpu')} AS share {where} AND gpu_time > 0 GROUP BY device"
    )
    expected = {f"gpu_{row['device']}": row["share"] for row in on_gpus}
    (on_cpu,) = arena.sql(f"SELECT {busy('cpu')} AS share {where} AND cpu_time > 0")
    expected["cpu_0"] = on_cpu["share"]
    assert set(shown) == set(expected)
    for device, share in expected.items():
        assert shown[device]["utilization"] == near(share, abs=1e-6)


def test_task_sizes(viewer: Viewer, arena: ArenaProcess, run: str) -> None:
    viewer.open("arena", run=run)
    bins = viewer.table("sizes")
    sizes = arena.sql(
        f"SELECT size FROM tasks FINAL WHERE run = '{run}' AND task_id >= {FIRST} ORDER BY size"
    )
    values = [row["size"] for row in sizes]
    assert sum(row["tasks"] for row in bins) == len(values) == WINDOW
    for place, row in enumerate(bins):
        last = place == len(bins) - 1
        inside = [v for v in values if row["from"] <= v < row["to"] or (last and v == row["to"])]
        assert row["tasks"] == near(len(inside), abs=1), row


def test_where_the_gpu_wins(viewer: Viewer, arena: ArenaProcess, run: str) -> None:
    viewer.open("arena", run=run)
    cells = viewer.table("heatmap")
    (stored,) = arena.sql(
        "SELECT count() AS tasks, avg(gpu_fraction) AS share FROM scheduler_results FINAL "
        f"WHERE run = '{run}' AND scheduler = 'oracle' AND task_id >= {FIRST}"
    )
    tasks = sum(cell["tasks"] for cell in cells)
    assert tasks == stored["tasks"]
    share = sum(cell["tasks"] * cell["gpu_share"] for cell in cells) / tasks
    assert share == near(stored["share"], rel=1e-9)


def test_the_workload(viewer: Viewer, arena: ArenaProcess, run: str) -> None:
    viewer.open("arena", run=run)
    dots = index_by(viewer.table("scatter"), "task_id")
    assert len(dots) == 300
    stored = index_by(
        arena.sql(
            "SELECT task_id, size, compute_intensity, memory_required FROM tasks FINAL "
            f"WHERE run = '{run}' AND task_id >= {TASKS - 300}"
        ),
        "task_id",
    )
    for task, row in stored.items():
        for field in ("size", "compute_intensity", "memory_required"):
            assert dots[task][field] == row[field]


def test_gpu_and_cpu_time(viewer: Viewer, arena: ArenaProcess, run: str) -> None:
    viewer.open("arena", run=run)
    shown = index_by(viewer.table("split"), "scheduler")
    stored = arena.sql(
        "SELECT scheduler, sum(gpu_time) AS gpu, sum(cpu_time) AS cpu, "
        "countIf(gpu_time > 0) AS gpu_tasks, count() AS tasks FROM scheduler_results FINAL "
        f"WHERE run = '{run}' AND task_id >= {FIRST} GROUP BY scheduler"
    )
    assert set(shown) == set(ALL_SCHEDULERS)
    for row in stored:
        seen = shown[row["scheduler"]]
        assert seen["gpu_time"] == near(row["gpu"], rel=1e-9)
        assert seen["cpu_time"] == near(row["cpu"], rel=1e-9)
        assert (seen["gpu_tasks"], seen["tasks"]) == (row["gpu_tasks"], row["tasks"])


def test_correlations(viewer: Viewer, arena: ArenaProcess, run: str) -> None:
    viewer.open("arena", run=run)
    shown = viewer.matrix("correlation")
    (stored,) = arena.sql(
        "SELECT corr(size, time) AS size_time, corr(compute_intensity, gpu_fraction) AS moved, "
        "corr(memory_required, energy) AS memory_energy "
        f"FROM (SELECT * FROM scheduler_results FINAL WHERE run = '{run}') AS results "
        f"JOIN (SELECT * FROM tasks FINAL WHERE run = '{run}') AS tasks USING (task_id) "
        f"WHERE scheduler = 'oracle' AND task_id >= {FIRST}"
    )
    assert shown["size", "time"] == near(stored["size_time"], abs=1e-9)
    assert shown["compute_intensity", "gpu_fraction"] == near(stored["moved"], abs=1e-9)
    assert shown["memory_required", "energy"] == near(stored["memory_energy"], abs=1e-9)
    assert shown["size", "size"] == near(1)


def test_recent_decisions_are_the_newest(viewer: Viewer, arena: ArenaProcess, run: str) -> None:
    viewer.open("arena", run=run)
    rows = viewer.table("decisions")
    assert rows
    assert max(row["task_id"] for row in rows) == TASKS - 1
    stored = {
        (row["task_id"], row["scheduler"]): row
        for row in arena.sql(
            "SELECT task_id, scheduler, time, energy, cost, gpu_fraction "
            f"FROM scheduler_results FINAL WHERE run = '{run}' AND task_id > {TASKS - 200}"
        )
    }
    for row in rows:
        expected = stored[row["task_id"], row["scheduler"]]
        assert row["actual_time"] == expected["time"]
        assert row["energy_consumption"] == expected["energy"]
        assert row["execution_cost"] == expected["cost"]
        assert row["gpu_fraction"] == expected["gpu_fraction"]


def test_the_radar_compares_a_scheduler_with_the_oracle(
    viewer: Viewer, arena: ArenaProcess, run: str
) -> None:
    viewer.open("scheduler", run=run, scheduler="rl_agent")
    rows = viewer.table("radar")
    stored = totals(arena, run)
    shown = {row["measure"].lower(): row for row in rows}
    for label in ("turnaround", "execution", "energy", "cost"):
        measure = "time" if label == "execution" else label
        ratio = stored["rl_agent"][measure] / stored["oracle"][measure]
        assert shown[label]["ratio"] == near(ratio, rel=LIVE)


def test_the_best_of_a_run_is_the_competitor_with_the_shortest_turnaround(
    viewer: Viewer, arena: ArenaProcess, run: str
) -> None:
    viewer.open("history", run=run)
    cell = viewer.widget("runs").locator(f'tr[data-run="{run}"] span[data-field="best"]')
    cell.wait_for()
    stored = totals(arena, run)
    competitors = (row["turnaround"] for name, row in stored.items() if name not in REFERENCES)
    assert float(cell.get_attribute("data-value")) == near(min(competitors) / TASKS, rel=1e-9)


def test_a_task_and_the_result_of_every_scheduler(
    viewer: Viewer, arena: ArenaProcess, run: str
) -> None:
    viewer.open("task", run=run, task=777)
    shown = index_by(viewer.table("task-results"), "scheduler")
    stored = arena.sql(
        "SELECT scheduler, time, energy, cost, gpu_fraction FROM scheduler_results FINAL "
        f"WHERE run = '{run}' AND task_id = 777"
    )
    assert set(shown) == set(ALL_SCHEDULERS)
    for row in stored:
        seen = shown[row["scheduler"]]
        assert seen["actual_time"] == row["time"]
        assert seen["energy_consumption"] == row["energy"]
        assert seen["execution_cost"] == row["cost"]
