"""The sketch against all values: counts are exact, quantiles within 0.8 %."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from shared.domain.quantile_sketch import SMALLEST, QuantileSketch
from shared.domain.tasks import Floats

SHARES = (0.0, 0.01, 0.25, 0.5, 0.95, 0.99, 1.0)
VALUES = arrays.arrays(np.float64, st.integers(1, 300), elements=st.floats(0, 1e9))
# Half of a bucket, which is at most 1/64 wide.
WITHIN = 1 / 128


def assert_close(sketch: QuantileSketch, values: Floats) -> None:
    # The smallest value that at least this share of the values does not exceed.
    exact = np.quantile(values, SHARES, method="inverted_cdf")
    found = sketch.quantiles(*SHARES)
    assert found == pytest.approx(exact.tolist(), rel=WITHIN, abs=2 * SMALLEST)


@given(VALUES)
def test_quantiles_are_within_half_a_bucket_of_the_exact_ones(values: Floats) -> None:
    sketch = QuantileSketch().add(values)
    assert_close(sketch, values)
    assert sketch.counts.sum() == len(values)


@pytest.mark.parametrize("sigma", [0.1, 1.0, 3.0])
def test_quantiles_of_many_values_in_batches(sigma: float) -> None:
    values = np.random.default_rng(0).lognormal(0, sigma, 100_000)
    sketch = QuantileSketch()
    for batch in np.array_split(values, 37):
        sketch = sketch.add(batch)
    assert_close(sketch, values)
    assert len(json.dumps(sketch.to_json())) < 6_000


@given(VALUES, VALUES)
def test_batches_and_merges_come_to_the_same(first: Floats, second: Floats) -> None:
    together = QuantileSketch().add(np.concatenate((first, second)))
    one, two = QuantileSketch().add(first), QuantileSketch().add(second)
    assert one.add(second).to_json() == together.to_json()
    assert one.merge(two).to_json() == together.to_json()
    assert two.merge(one).to_json() == together.to_json()


@given(VALUES)
def test_a_sketch_survives_json(values: Floats) -> None:
    sketch = QuantileSketch().add(values)
    again = QuantileSketch.from_json(json.loads(json.dumps(sketch.to_json())))
    assert again.to_json() == sketch.to_json()
    assert again.quantiles(*SHARES) == sketch.quantiles(*SHARES)


def test_counts_may_be_above_32_bits() -> None:
    sketch = QuantileSketch(5, np.array([2**40, 1]))
    assert QuantileSketch.from_json(sketch.to_json()).counts.tolist() == [2**40, 1]


def test_without_values_there_is_nothing() -> None:
    empty = QuantileSketch()
    assert empty.quantiles(0.5, 0.99) == [0, 0]
    assert empty.add(np.zeros(0)).counts.sum() == 0
    again = QuantileSketch.from_json(empty.to_json())
    some = QuantileSketch().add(np.ones(3))
    assert again.merge(some).to_json() == some.merge(again).to_json() == some.to_json()


def test_zeros_beside_large_values_keep_the_sketch_small() -> None:
    values = np.array([0.0, -0.0, 5e-324, 1e9])
    sketch = QuantileSketch().add(values)
    assert len(sketch.counts) < 4000
    assert sketch.quantiles(0.5, 1.0) == pytest.approx([0, 1e9], rel=WITHIN, abs=2 * SMALLEST)
