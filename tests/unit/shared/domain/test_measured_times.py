"""Measured tables: what was measured comes back, and what lies between and beyond."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.domain.hardware.measured_times import Curve, MeasuredTimes


def told_apart(sizes: list[float]) -> bool:
    return all(size >= before * (1 + 1e-8) for before, size in pairwise(sizes))


SIZES = st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=12).map(sorted).filter(told_apart)


def times_of(*curves: Curve) -> MeasuredTimes:
    return MeasuredTimes(curves, ["gpu", "cpu"])


@given(SIZES, st.data())
def test_every_entry_of_the_table_is_reproduced(sizes: list[float], data: st.DataObject) -> None:
    values = st.lists(st.floats(1e-9, 1e6), min_size=len(sizes), max_size=len(sizes))
    seconds = data.draw(values)
    table = times_of(Curve(kind="k", type="cpu", sizes=tuple(sizes), seconds=tuple(seconds)))
    found = table.seconds(["k"] * len(sizes), np.array(sizes))
    assert found[:, 1].tolist() == pytest.approx(seconds, rel=1e-12)
    assert np.isinf(found[:, 0]).all()
    assert not table.outside(["k"] * len(sizes), np.array(sizes)).any()


def interpolated(points: list[tuple[float, float]], size: float) -> float:
    """One look-up, written again: the line through the two points around the size, or the two
    nearest ones."""
    if len(points) == 1:
        return points[0][1] * size / points[0][0]
    right = next((k for k in range(1, len(points) - 1) if points[k][0] > size), len(points) - 1)
    (x0, y0), (x1, y1) = points[right - 1], points[right]
    exponent = math.log(y1 / y0) / math.log(x1 / x0)
    return float(y0 * (size / x0) ** exponent)


def test_many_curves_of_different_lengths_are_looked_up_at_once() -> None:
    random = np.random.default_rng(5)
    curves = {}
    for kind, name in product("abcdefghij", ("gpu", "cpu")):
        if random.random() < 0.8:
            sizes = np.cumprod(1 + random.uniform(0.1, 2, random.integers(1, 20)))
            seconds = random.lognormal(0, 0.3, len(sizes)) * sizes
            curves[kind, name] = list(zip(sizes.tolist(), seconds.tolist(), strict=True))
    table = times_of(
        *(
            Curve(
                kind=kind,
                type=name,
                sizes=tuple(size for size, _ in points),
                seconds=tuple(time for _, time in points),
            )
            for (kind, name), points in curves.items()
        )
    )
    kinds = random.choice(list("abcdefghijk"), 2000).tolist()
    sizes = random.lognormal(3, 2, 2000)
    found = table.seconds(kinds, sizes)
    for row, (kind, size) in enumerate(zip(kinds, sizes.tolist(), strict=True)):
        for column, name in enumerate(("gpu", "cpu")):
            points = curves.get((kind, name))
            expected = math.inf if points is None else interpolated(points, size)
            assert found[row, column] == pytest.approx(expected, rel=1e-9)


@pytest.fixture
def table() -> MeasuredTimes:
    return times_of(
        Curve(kind="gemm", type="gpu", sizes=(10, 1000, 4000), seconds=(1, 100, 6400)),
        Curve(kind="gemm", type="cpu", sizes=(100,), seconds=(7,), deviations=(0.2,)),
        Curve(kind="lu", type="cpu", sizes=(1, 4), seconds=(3, 3), deviations=(0.1, 0.3)),
    )


def test_between_two_sizes_the_time_is_a_line_in_log_log(table: MeasuredTimes) -> None:
    # From 10 to 1000 the exponent is 1, from 1000 to 4000 it is 3.
    found = table.seconds(["gemm"] * 3, np.array([50.0, 100.0, 2000.0]))
    assert found[:, 0].tolist() == pytest.approx([5, 10, 800], rel=1e-12)


def test_beyond_the_sizes_the_nearest_line_goes_on_and_it_says_so(table: MeasuredTimes) -> None:
    sizes = np.array([1.0, 10.0, 4000.0, 8000.0])
    found = table.seconds(["gemm"] * 4, sizes)
    assert found[:, 0].tolist() == pytest.approx([0.1, 1, 6400, 51_200], rel=1e-12)
    assert table.outside(["gemm"] * 4, sizes)[:, 0].tolist() == [True, False, False, True]


def test_a_curve_of_one_point_is_proportional_to_the_size(table: MeasuredTimes) -> None:
    found = table.seconds(["gemm"] * 3, np.array([50.0, 100.0, 1000.0]))
    assert found[:, 1].tolist() == pytest.approx([3.5, 7, 70], rel=1e-12)
    assert table.outside(["gemm"] * 2, np.array([50.0, 100.0]))[:, 1].tolist() == [True, False]


def test_kinds_in_any_order_get_their_own_curves(table: MeasuredTimes) -> None:
    found = table.seconds(["lu", "gemm", "sort", "lu"], np.array([2.0, 100.0, 5.0, 4.0]))
    assert found[:, 1].tolist() == pytest.approx([3, 7, np.inf, 3])
    assert found[:, 0].tolist() == pytest.approx([np.inf, 10, np.inf, np.inf])
    outside = table.outside(["sort", "lu"], np.array([5.0, 9.0]))
    assert outside.tolist() == [[False, False], [False, True]]


def test_a_deviation_is_that_of_the_nearest_size_in_log_log(table: MeasuredTimes) -> None:
    found = table.deviation(["lu", "lu", "gemm", "lu"], np.array([1.9, 2.1, 5000.0, 100.0]))
    assert found[:, 1].tolist() == [0.1, 0.3, 0.2, 0.3]
    assert found[:, 0].tolist() == [0, 0, 0, 0]


def test_it_knows_its_kinds_and_their_sizes(table: MeasuredTimes) -> None:
    assert table.kinds == ("gemm", "lu")
    assert table.sizes_of("gemm") == (10, 4000)
    assert table.sizes_of("lu") == (1, 4)


def test_sizes_that_differ_in_their_last_digit_are_refused() -> None:
    """Their logarithms are the same: the line between them would have no slope."""
    with pytest.raises(ValueError, match="sizes must rise"):
        Curve(kind="k", type="cpu", sizes=(0.001, 0.0010000000000000002), seconds=(1.0, 1.0))
