from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from services.gateway.analysis.utilization import shares, utilization
from shared.domain.spec import RunSpec

SPEC = RunSpec.parse({"schedulers": ["a"], "cluster": {"cpus": 2, "gpus": 1}})


def test_parts_fill_the_steps_they_lie_in() -> None:
    """From 8 to 12 and from 19 to 40, in steps of ten seconds from 10 to 40."""
    result = shares(np.array([8.0, 19.0]), np.array([4.0, 21.0]), np.array([10.0, 20, 30, 40]))
    assert result == pytest.approx([0.3, 1, 1])


def test_an_empty_window_is_idle() -> None:
    assert shares(np.array([0.0]), np.array([1.0]), np.zeros(4)).tolist() == [0, 0, 0]


def test_each_device_has_its_own_utilisation() -> None:
    """Task 0 on CPU 0 for 30 s, tasks 1 and 3 on CPU 1 for 15 s each, the GPU for 6 s; of 60 s."""
    parts = pa.table(
        {
            "task_id": [0, 1, 3],
            "gpu": [0, 0, 0],
            "gpu_start": [0.0, 54.0, 0.0],
            "gpu_time": [0.0, 6.0, 0.0],
            "cpu_start": [0.0, 0.0, 15.0],
            "cpu_time": [30.0, 15.0, 15.0],
        }
    )
    result = utilization("r", "a", SPEC, 0.0, 60.0, parts)
    assert {device.name: device.utilization for device in result.devices} == pytest.approx(
        {"cpu_0": 0.5, "cpu_1": 0.5, "gpu_0": 0.1}
    )
    assert result.average == pytest.approx(1.1 / 3)
    assert result.step == 2
    assert result.devices[2].busy == [0.0] * 27 + [1.0] * 3
