"""Which bars and blocks a timeline has, on a cluster of two nodes with a V100, a T4 and a CPU."""

from __future__ import annotations

import numpy as np
import pytest

from services.gateway.analysis import timeline as module
from services.gateway.analysis.device_work import Work
from services.gateway.analysis.schemas import Timeline
from services.gateway.analysis.timeline import choose_rows, timeline
from shared.domain.spec import RunSpec
from shared.errors import NotFound

PLATFORM = RunSpec.parse(
    {
        "schedulers": ["a"],
        "cluster": {
            "devices": [{"type": "v100"}, {"type": "t4"}, {"type": "cpu"}],
            "nodes": [{"name": "node", "count": 2}],
        },
    }
).platform
# Devices 0 and 1 are V100, 2 and 3 T4, 4 and 5 CPUs. Task 7 is split between a T4 and a CPU.
WORK = Work(
    task_id=np.array([7, 5, 7, 6]),
    device=np.array([3, 0, 5, 5]),
    begin=np.array([20.0, 10.0, 25.0, 5.0]),
    length=np.array([5.0, 2.0, 10.0, 20.0]),
    split=np.array([True, False, True, False]),
    failed=np.array([False, True, False, False]),
    size=np.array([300.0, 100.0, 300.0, np.nan]),
)


def shown(kind: str | None = None, node: str | None = None, offset: int = 0) -> Timeline:
    rows = choose_rows(PLATFORM, kind, node, offset, most=4)
    return timeline("r", "a", PLATFORM, rows, (10.0, 30.0), 40.0, 50.0, WORK)


def test_bars_are_in_the_rows_of_their_devices() -> None:
    result = shown(node="node-1")
    assert [device.name for device in result.devices] == [
        "node-1/v100_0",
        "node-1/t4_0",
        "node-1/cpu_0",
    ]
    assert result.parts is not None
    assert result.parts.row == [2, 1, 2]
    assert result.parts.task_id == [6, 7, 7]
    assert result.parts.begin == [5, 20, 25]
    assert result.parts.end == [25, 25, 35]
    assert result.parts.decision == [1, 2, 2]
    assert result.parts.size == [None, 300, 300]
    # From 10 to 30 the T4 works for 5 seconds, the CPU without a break.
    assert [(each.parts, each.busy) for each in result.devices] == [(0, 0), (1, 0.25), (2, 1)]


def test_many_devices_have_pages() -> None:
    last = shown(offset=4)
    assert (last.offset, last.matching) == (4, 6)
    assert [device.name for device in last.devices] == ["node-0/cpu_0", "node-1/cpu_0"]
    assert last.parts is not None
    assert last.parts.row == [1, 1]
    assert [device.name for device in shown("t4").devices] == ["node-0/t4_0", "node-1/t4_0"]
    beyond = shown(offset=6)
    assert (beyond.devices, beyond.parts and beyond.parts.row) == ([], [])
    with pytest.raises(NotFound, match="v100, t4, cpu"):
        shown("tpu")
    with pytest.raises(NotFound, match="node-2"):
        shown(node="node-2")


def test_too_many_bars_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """In four steps of five seconds: the CPU works on task 6 until 25, then on task 7."""
    monkeypatch.setattr(module, "MOST_BARS", 2)
    monkeypatch.setattr(module, "STEPS", 4)
    result = shown(node="node-1")
    assert result.parts is None
    assert result.blocks is not None
    accelerator, cpu, split = result.blocks.busy
    assert accelerator == [[0] * 4] * 3
    assert cpu == [[0] * 4, [0] * 4, [1, 1, 1, 0]]
    assert split == [[0] * 4, [0, 0, 1, 0], [0, 0, 0, 1]]
    assert result.blocks.size == [[None] * 4, [None, None, 300, None], [None] * 3 + [300]]
