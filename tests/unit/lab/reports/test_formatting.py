"""Numbers as text."""

from __future__ import annotations

import pytest

from services.lab.reports.formatting import with_interval
from services.lab.reports.statistics import Estimate


@pytest.mark.parametrize(
    ("mean", "low", "high", "text"),
    [
        (1.0176, 1.0, 1.1, "1.02 [1.00, 1.10]"),
        (1.0176, 1.0155, 1.0197, "1.018 [1.016, 1.020]"),
        (1.0176, 1.01752, 1.01768, "1.0176 [1.0175, 1.0177]"),
        (2.0, 2.0, 2.0, "2.00 [2.00, 2.00]"),
        (2.0, None, None, "2.00"),
    ],
)
def test_an_interval_is_shown_to_have_a_width(
    mean: float, low: float | None, high: float | None, text: str
) -> None:
    assert with_interval(Estimate(mean, low, high, 5)) == text


def test_the_unit_follows_the_mean() -> None:
    assert with_interval(Estimate(1561.2, 1537.4, 1585.3, 5), "s") == "1,561 s [1,537, 1,585]"
