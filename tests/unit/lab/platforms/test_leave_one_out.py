"""Predictions of left-out sizes, worked out by hand."""

from __future__ import annotations

import pytest

from services.lab.platforms.leave_one_out import by_kind, predictions, reproduction_error
from shared.domain.hardware.measured_times import Curve


def curve(kind: str, sizes: tuple[float, ...], seconds: tuple[float, ...]) -> Curve:
    return Curve(kind=kind, type="cpu", sizes=sizes, seconds=seconds)


def test_a_power_of_the_size_is_predicted_exactly() -> None:
    exact = curve("cube", (1, 2, 4, 8), (1, 8, 64, 512))
    assert [each.error for each in predictions([exact])] == pytest.approx([0] * 4, abs=1e-12)


def test_the_error_is_that_of_the_line_through_the_other_sizes() -> None:
    bent = curve("bent", (1, 10, 100), (1, 20, 100))
    # Between (1, 1) and (100, 100) the line gives 10 at size 10: half of the measured 20. Through
    # (10, 20) and (100, 100) it gives 20 / 5 = 4 at size 1, through (1, 1) and (10, 20) 400 at 100.
    made = {each.size: (each.inside, each.error) for each in predictions([bent])}
    assert made[10] == (True, pytest.approx(-0.5))
    assert made[1] == (False, pytest.approx(3.0))
    assert made[100] == (False, pytest.approx(3.0))
    (row,) = by_kind([bent])
    assert row["points"] == 3
    assert row["errors"] == pytest.approx([0.5, 0.5, 3.0, 3.0])


def test_curves_of_two_sizes_cannot_be_judged() -> None:
    (row,) = by_kind([curve("short", (1, 2), (1, 2))])
    assert row["errors"] == [None] * 4


def test_measured_sizes_are_reproduced() -> None:
    curves = [curve("a", (3, 7, 1e9), (0.1, 1e-6, 5e4)), curve("b", (1024,), (0.3,))]
    assert reproduction_error(curves) < 1e-14
