"""The race table: schedulers are ranked by turnaround, and failures are beside it."""

from __future__ import annotations

import re
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
        "avg_wait": 1.3,
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
    console = Console(width=200, no_color=True, force_terminal=True)
    with console.capture() as capture:
        console.print(race_table(*arguments))
    plain = re.sub(r"\x1b\[[0-9;]*m", "", capture.get())
    rows = [line.strip(" │┃").replace("┃", "│") for line in plain.splitlines()]
    cells = [[cell.strip() for cell in row.split("│")] for row in rows]
    return [row for row in cells if len(row) > 1 or "turnaround" in row[0]]


def test_the_shortest_turnaround_is_first_and_failures_are_beside_it() -> None:
    """gpu_only takes longer to execute a task than the Oracle, but its tasks wait less."""
    slow = standing(
        avg_time=0.3, vs_oracle=1.5, avg_turnaround=0.9, avg_wait=0.6, failed=500, failed_share=0.25
    )
    headings, first, second, caption = lines({"oracle": standing(), "gpu_only": slow})
    assert headings == [
        "scheduler", "results", "failed", "turnaround s", "wait s", "p95 s", "time ms", "vs oracle",
        "makespan s", "energy J", "cost µ$",
    ]  # fmt: skip
    assert first[:6] == ["gpu_only", "2,000", "500 (25.0%)", "0.900", "0.600", "4.250"]
    assert second == [
        "oracle ref", "2,000", "0", "1.500", "1.300", "4.250", "200.0", "1.000", "1,200.0", "7.00",
        "20.00",
    ]  # fmt: skip
    for part in ("by mean turnaround", "a reference", "a failed task is charged"):
        assert part in caption[0]


def test_a_narrow_terminal_loses_columns_not_digits() -> None:
    console = Console(width=80, no_color=True)
    with console.capture() as capture:
        console.print(
            race_table({"least_loaded": standing(), "clairvoyant": standing()}, None, 1000.0)
        )
    text = capture.get()
    assert "…" not in text
    for kept in ("least_loaded", "turnaround s", "1.500", "wait s", "1.300", "p95 s", "4.250"):
        assert kept in text
    assert "makespan s" in text.partition("too narrow for: ")[2]


def test_the_bound_and_idle_power_have_columns_where_they_are_known() -> None:
    idle = standing(idle_energy=6000.0, avg_idle_energy=3.0)
    headings, row, caption = lines({"eft": idle}, None, 1000.0)
    shown = dict(zip(headings, row, strict=True))
    assert (shown["× bound"], shown["energy J"], shown["with idle J"]) == ("1.20", "7.00", "10.00")
    assert "reference" not in caption[0]


def test_long_tasks_are_shown_in_seconds() -> None:
    first = standing(avg_time=28_949.46, avg_turnaround=31_447.178, turnaround_p95=20_608.0)
    second = standing(avg_time=28_949.46, avg_turnaround=33_293.882, turnaround_p95=22_400.0)
    headings, *rows, _ = lines({"gpu_only": second, "eft": first})
    shown = [dict(zip(headings, row, strict=True)) for row in rows]
    assert [row["scheduler"] for row in shown] == ["eft", "gpu_only"]
    assert [shown[0][name] for name in ("time s", "turnaround s", "p95 s")] == [
        "28,949.5", "31,447.2", "20,608.0"
    ]  # fmt: skip
