"""The race table: schedulers are ranked by execution time, and failures are beside it."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from services.cli.output import race_table


def standing(**fields: Any) -> dict[str, Any]:
    return {
        "results": 2000,
        "failed": 0,
        "failed_share": 0.0,
        "avg_time": 0.2,
        "avg_turnaround": 1.5,
        "turnaround_p95": 4.25,
        "makespan": 1200.0,
        "avg_energy": 7.0,
        "avg_idle_energy": 0.0,
        "idle_energy": 0.0,
        "avg_cost": 2e-5,
        "vs_oracle": 1.0,
        **fields,
    }


def lines(*arguments: Any) -> list[list[str]]:
    """The cells of each line that has some, then the caption."""
    console = Console(width=200, no_color=True)
    with console.capture() as capture:
        console.print(race_table(*arguments))
    rows = [line.strip(" │┃").replace("┃", "│") for line in capture.get().splitlines()]
    cells = [[cell.strip() for cell in row.split("│")] for row in rows]
    return [row for row in cells if len(row) > 1 or "execution time" in row[0]]


def test_failures_and_turnaround_are_beside_the_execution_time() -> None:
    slow = standing(avg_time=0.3, vs_oracle=1.5, failed=500, failed_share=0.25)
    headings, first, second, caption = lines({"gpu_only": slow, "oracle": standing()})
    assert headings == [
        "scheduler", "results", "failed", "time ms", "vs oracle", "turnaround s", "p95 s",
        "makespan s", "energy J", "cost µ$",
    ]  # fmt: skip
    assert first == [
        "oracle", "2,000", "0", "200.0", "1.000", "1.500", "4.250", "1,200.0", "7.00", "20.00"
    ]  # fmt: skip
    assert second[:4] == ["gpu_only", "2,000", "500 (25.0%)", "300.0"]
    assert caption == [
        "by execution time (time ms); a failed task is charged as if it had run on the slowest "
        "device type that can run it"
    ]


def test_a_narrow_terminal_loses_columns_not_digits() -> None:
    console = Console(width=80, no_color=True)
    with console.capture() as capture:
        console.print(race_table({"least_loaded": standing()}, None, 1000.0))
    text = capture.get()
    assert "…" not in text
    for kept in ("least_loaded", "time ms", "200.0", "turnaround s", "1.500", "× bound", "1.20"):
        assert kept in text
    assert "makespan s" not in text


def test_the_bound_and_idle_power_have_columns_where_they_are_known() -> None:
    idle = standing(idle_energy=6000.0, avg_idle_energy=3.0)
    headings, row, caption = lines({"eft": idle}, None, 1000.0)
    shown = dict(zip(headings, row, strict=True))
    assert (shown["× bound"], shown["energy J"], shown["with idle J"]) == ("1.20", "7.00", "10.00")
    assert caption == ["by execution time (time ms)"]


def test_long_tasks_are_shown_in_seconds_and_ties_go_by_turnaround() -> None:
    first = standing(avg_time=28_949.46, avg_turnaround=31_447.178, turnaround_p95=20_608.0)
    second = standing(avg_time=28_949.46, avg_turnaround=33_293.882, turnaround_p95=22_400.0)
    headings, *rows, caption = lines({"gpu_only": second, "oracle": first})
    shown = [dict(zip(headings, row, strict=True)) for row in rows]
    assert [row["scheduler"] for row in shown] == ["oracle", "gpu_only"]
    assert [shown[0][name] for name in ("time s", "turnaround s", "p95 s")] == [
        "28,949.5", "31,447.2", "20,608.0"
    ]  # fmt: skip
    assert caption == ["by execution time (time s)"]
