"""Numbers as text."""

from __future__ import annotations

import pytest

from services.lab.reports.formatting import number, plus_minus
from services.lab.reports.statistics import Estimate


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (18.346, "18.3"),
        (1234567.0, "1.23e6"),
        (0.0000123, "1.23e-5"),
        (-0.5, "-0.500"),
        (3.6e-20, "0"),
        (None, "–"),
    ],
)
def test_a_number_has_few_digits(value: float | None, text: str) -> None:
    assert number(value) == text


def test_equal_sums_of_different_order_have_no_difference() -> None:
    assert plus_minus(Estimate(-6.4e-16, -5e-15, 3.8e-15, 6)) == "0 ± 0"
