"""What learners minimise, by hand, on the default node: GPUs of 50 W and $0.0001 a second, a CPU of
30 W and $0.00002."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared.domain.learning.objective import charge, penalty
from shared.domain.spec import RunSpec


def spec_of(physics: dict[str, Any] | None = None, **objective: float) -> RunSpec:
    return RunSpec.parse({"objective": objective, "physics": physics or {}})


def penalty_of(spec: RunSpec) -> float:
    """The penalty of a task that took 3 s, 160 J and $0.00012."""
    (value,) = penalty(np.array([3.0]), np.array([160.0]), np.array([0.00012]), spec)
    return float(value)


def test_by_default_only_turnaround_counts() -> None:
    assert penalty_of(spec_of()) == 3.0
    assert charge(spec_of()).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        ({"energy": 1.0}, 3 + 160 / 80),
        ({"turnaround": 2.0, "energy": 0.5}, 6 + 1),
        ({"cost": 1.0}, 3 + 1),
        ({"turnaround": 0.5, "energy": 0.25, "cost": 2.0}, 1.5 + 0.5 + 2),
    ],
)
def test_energy_and_money_count_in_seconds_of_a_gpu_and_a_cpu(
    objective: dict[str, float], expected: float
) -> None:
    assert penalty_of(spec_of(**objective)) == pytest.approx(expected)


def test_a_second_on_a_device_costs_what_it_draws() -> None:
    by_type = dict(zip(("gpu", "cpu"), charge(spec_of(energy=1.0)).tolist(), strict=True))
    assert by_type == pytest.approx({"gpu": 50 / 80, "cpu": 30 / 80})
    by_type = dict(zip(("gpu", "cpu"), charge(spec_of(cost=1.0)).tolist(), strict=True))
    assert by_type == pytest.approx({"gpu": 10 / 12, "cpu": 2 / 12})


def test_paid_by_electricity_a_second_costs_what_it_draws() -> None:
    spec = spec_of({"cost_model": "electricity"}, cost=1.0)
    assert charge(spec).tolist() == pytest.approx([50 / 80, 30 / 80])


def test_devices_that_draw_nothing_cost_nothing() -> None:
    spec = spec_of({"gpu_watts": 0, "cpu_watts": 0}, energy=1.0)
    assert charge(spec).tolist() == [0.0, 0.0]
    assert np.isfinite(penalty_of(spec_of({"gpu_watts": 0, "cpu_watts": 0}, energy=0.0)))
