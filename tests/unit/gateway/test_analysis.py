"""Figures of a window of tasks, against numbers computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from services.gateway.analysis.schemas import Cell
from services.gateway.analysis.task_window import (
    analyse,
    correlation,
    frame,
    heatmap,
    log_edges,
    sizes,
    wins,
)
from shared.domain.spec import RunSpec

FEATURES = pa.table(
    {
        "task_id": [5, 6, 7, 8],
        "size": [10.0, 100.0, 100.0, 1000.0],
        "compute_intensity": [0.05, 0.95, 1.0, 0.05],
        "memory_required": [1.0, 2.0, 3.0, 4.0],
        "width": [1, 1, 1, 1],
    }
)
# GPUs 0 and 1 are devices 0 and 1, the CPU is device 2.
PLATFORM = RunSpec.parse({"cluster": {"gpus": 2}}).platform


def results(scheduler: str, times: list[float], **columns: Any) -> pa.Table:
    count = len(times)
    defaults = {
        "scheduler": [scheduler] * count,
        "task_id": list(range(5, 5 + count)),
        "gpu_fraction": [0.0] * count,
        "device": [0] * count,
        "cpu": [2] * count,
        "time": times,
        "turnaround": times,
        "energy": times,
        "cost": times,
        "gpu_time": [0.0] * count,
        "cpu_time": times,
        "failed": [0] * count,
    }
    return pa.table({**defaults, **columns})


def test_wins_count_failures_as_losses_and_small_differences_as_ties() -> None:
    """a wins task 5, loses 6, ties 7 by rounding, and in 8 only b did not fail."""
    a = {"time": np.array([1.0, 2.0, 3.0, 0.0]), "failed": np.array([0.0, 0, 0, 1])}
    b = {"time": np.array([2.0, 1.0, 3.0 + 1e-12, 9.0]), "failed": np.array([0.0, 0, 0, 0])}
    result = wins(["a", "b"], [a, b], "time")
    assert result.matrix == [[None, 0.25], [0.5, None]]
    assert result.ties == [[None, 0.25], [0.25, None]]


def test_who_waits_longer_loses_by_turnaround_though_execution_was_faster() -> None:
    quick = {"time": np.ones(2), "turnaround": np.array([9.0, 1.0]), "failed": np.zeros(2)}
    slow = {"time": np.full(2, 2.0), "turnaround": np.full(2, 2.0), "failed": np.zeros(2)}
    assert wins(["a", "b"], [quick, slow], "time").matrix[0][1] == 1
    by_turnaround = wins(["a", "b"], [quick, slow], "turnaround")
    assert (by_turnaround.by, by_turnaround.matrix[0][1]) == ("turnaround", 0.5)


def test_two_that_both_fail_tie() -> None:
    failed = {"time": np.zeros(2), "failed": np.ones(2)}
    result = wins(["a", "b"], [failed, failed], "time")
    assert (result.matrix[0][1], result.ties[0][1]) == (0, 1)


def test_correlations_are_pearsons_and_none_where_nothing_varies() -> None:
    """That of (1, 2, 3) with (2, 4, 7) is 5 / sqrt(2 * 38/3)."""
    columns = {
        "up": np.array([1.0, 2, 3]),
        "more": np.array([2.0, 4, 7]),
        "down": np.array([3.0, 2, 1]),
        "still": np.array([0.1, 0.1, 0.1]),
    }
    result = correlation(columns)
    assert result.names == ["up", "more", "down", "still"]
    assert result.matrix[0][1] == pytest.approx(5 / np.sqrt(2 * 38 / 3))
    assert result.matrix[0][2] == pytest.approx(-1)
    assert result.matrix[1][1] == pytest.approx(1)
    assert result.matrix[3] == [None] * 4


def test_sizes_are_counted_in_logarithmic_bins() -> None:
    result = sizes(np.array([1.0, 1.0, 10.0, 100.0]))
    assert len(result.edges) == 21
    assert (result.edges[0], result.edges[-1]) == (1.0, 100.0)
    assert result.edges[10] == pytest.approx(10)
    assert sum(result.counts) == 4
    assert (result.counts[0], result.counts[-1]) == (2, 1)


@pytest.mark.parametrize("values", [[], [7.0], [7.0, 7.0], [1e-9, 1e9]])
def test_edges_hold_every_value(values: list[float]) -> None:
    edges = log_edges(np.array(values), 20)
    assert (np.diff(edges) > 0).all()
    assert all(edges[0] <= value <= edges[-1] for value in values)


def test_the_heat_map_has_shares_and_types_by_intensity_and_size() -> None:
    """Ten bins a side from 10 to 1000: 100 is the first of the sixth."""
    result = heatmap(
        FEATURES["size"].to_numpy(),
        FEATURES["compute_intensity"].to_numpy(),
        np.array([0, 1, 0.5, 0.25]),
        np.array([1, 0, 1, 1]),
        types=2,
    )
    cells = {(i, j): cell for i, row in enumerate(result.cells) for j, cell in enumerate(row)}
    filled = {place: cell for place, cell in cells.items() if cell is not None}
    assert filled == {
        (0, 0): Cell(tasks=1, gpu_share=0, types=[0, 1]),
        (9, 5): Cell(tasks=2, gpu_share=0.75, types=[0.5, 0.5]),
        (0, 9): Cell(tasks=1, gpu_share=0.25, types=[0, 1]),
    }


def test_an_analysis_covers_the_tasks_that_every_scheduler_has_results_for() -> None:
    """b has no result for task 8 yet."""
    a = results("a", [1.0, 1.0, 1.0, 1.0], gpu_time=[0.0, 0.5, 0.0, 0.5])
    b = results("b", [2.0, 0.5, 2.0], gpu_fraction=[0.0, 1.0, 0.5])
    window = frame(FEATURES, pa.concat_tables([a, b]))
    analysis = analyse("r", "b", ["b", "a"], window, PLATFORM)
    assert analysis.window.model_dump() == {"first": 5, "last": 8, "tasks": 3}
    assert analysis.wins.names == ["b", "a"]
    assert analysis.wins.matrix[0][1] == pytest.approx(1 / 3)
    points = [(point.task_id, point.gpu_fraction) for point in analysis.scatter]
    assert points == [(5, 0.0), (6, 1.0), (7, 0.5)]
    split = {"gpu_time": 0.5, "cpu_time": 3.0, "gpu_tasks": 1, "tasks": 3, "failed": 0}
    by_type = {"type_time": [0.5, 3.0], "type_tasks": [0, 3]}
    assert analysis.split["a"].model_dump() == split | by_type
    assert sum(analysis.sizes.counts) == 3


def test_an_analysis_of_nothing_is_empty() -> None:
    empty = FEATURES.slice(0, 0)
    window = frame(empty, results("a", []).slice(0, 0))
    analysis = analyse("r", "a", ["a"], window, PLATFORM)
    assert (analysis.window.tasks, analysis.scatter, analysis.split) == (0, [], {})
    assert sum(analysis.sizes.counts) == 0
    assert analysis.correlation.matrix == [[None] * 7] * 7


def test_a_task_belongs_to_the_type_that_worked_on_it_longest() -> None:
    """Devices 0, 1, 2: a V100, a TPU, a CPU. Task 6 of width 2 takes two V100 for 3 s each."""
    devices = [{"type": "v100", "count": 2}, {"type": "tpu"}, {"type": "cpu"}]
    platform = RunSpec.parse({"cluster": {"devices": devices}}).platform
    features = FEATURES.set_column(4, "width", pa.array([1, 2, 1, 1]))
    table = results(
        "a",
        [1.0, 3.0, 5.0, 7.0],
        device=[2, 0, 2, -1],
        cpu=[3, 3, 3, 3],
        gpu_time=[0.9, 3.0, 1.0, 0.0],
        cpu_time=[0.1, 0.0, 4.0, 7.0],
        failed=[0, 0, 0, 1],
    )
    analysis = analyse("r", "a", ["a"], frame(features, table), platform)
    assert analysis.types == ["v100", "tpu", "cpu"]
    assert [(point.type, point.failed) for point in analysis.scatter] == [
        ("tpu", False),
        ("v100", False),
        ("cpu", False),
        ("cpu", True),
    ]
    split = analysis.split["a"]
    assert split.type_time == pytest.approx([6.0, 1.9, 11.1])
    assert (split.type_tasks, split.failed) == ([1, 1, 2], 1)
