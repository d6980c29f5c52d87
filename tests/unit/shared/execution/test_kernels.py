"""The kernels compute what they say, notice wrong results, and do the share they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared.execution.kernels import (
    BLOCK,
    KERNELS,
    POINTS,
    RING,
    Inputs,
    WrongResult,
    prepare,
)
from shared.execution.libraries import Blas, Library, Plain, Torch

KINDS = tuple(KERNELS)


@pytest.fixture(scope="module", params=["plain", "blas", "torch"])
def library(request: pytest.FixtureRequest) -> Library:
    if request.param == "torch":
        pytest.importorskip("torch")
        return Torch("cpu", 1)
    return Plain() if request.param == "plain" else Blas()


def matrix(rows: int, columns: int) -> Any:
    return np.random.default_rng(rows).random((rows, columns), dtype=np.float32)


def test_a_product_is_that_of_the_definition(library: Library) -> None:
    left, right = matrix(300, 260), matrix(260, 270)
    out = library.empty(300, 270)
    library.multiply(library.array(left), library.array(right), out)
    exact = left.astype(np.float64) @ right.astype(np.float64)
    np.testing.assert_allclose(np.asarray(out), exact, rtol=1e-5)


def test_a_transform_is_that_of_the_definition(library: Library) -> None:
    rows = matrix(3, 64)
    points = np.arange(64)
    definition = np.exp(-2j * np.pi * np.outer(points, points) / 64)
    found = np.asarray(library.transform(library.array(rows)))
    np.testing.assert_allclose(found, rows.astype(np.float64) @ definition, atol=1e-4)


def test_a_triad_adds_a_multiple(library: Library) -> None:
    a, b = matrix(1, 100)[0], matrix(2, 100)[1]
    out = library.empty(100)
    library.triad(library.array(a), library.array(b), 3.0, out)
    exact = [x + 3 * y for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_allclose(np.asarray(out), exact, rtol=1e-6)


def test_rows_are_sorted(library: Library) -> None:
    rows = matrix(4, 500)
    assert np.asarray(library.sort(library.array(rows))).tolist() == [
        sorted(row) for row in rows.tolist()
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kernel_runs_and_finds_its_own_result_right(kind: str, library: Library) -> None:
    inputs = Inputs(library)
    for share in (1.0, 0.3, 0.0):
        prepare(kind, 1.7, 0.4, share, inputs)()


class Counting(Blas):
    """Counts the elements that each operation was asked for."""

    def __init__(self) -> None:
        self.products = self.triads = self.points = self.sorted = 0

    def multiply(self, left: Any, right: Any, out: Any) -> None:
        self.products += left.shape[0] * left.shape[1] * right.shape[1]
        super().multiply(left, right, out)

    def triad(self, a: Any, b: Any, factor: float, out: Any) -> None:
        self.triads += a.size
        super().triad(a, b, factor, out)

    def transform(self, rows: Any) -> Any:
        self.points += rows.size
        return super().transform(rows)

    def sort(self, rows: Any) -> Any:
        self.sorted += rows.size
        return super().sort(rows)


@pytest.fixture
def counted() -> tuple[Counting, Inputs]:
    library = Counting()
    return library, Inputs(library)


def test_size_and_share_say_how_much_is_computed(counted: tuple[Counting, Inputs]) -> None:
    library, inputs = counted
    # Size 4 is a product of edge 256.
    prepare("matmul", 4, 0, 0.25, inputs)()
    assert library.products == 64 * 256 * 256
    prepare("triad", 4, 0, 0.25, inputs)()
    assert library.triads == 256**3 / 2 / 4
    prepare("fft", 4, 0, 0.25, inputs)()
    assert library.points == BLOCK
    prepare("sort", 4.5, 0, 0.5, inputs)()
    assert library.sorted == 2.25 * BLOCK


def test_a_mix_divides_the_work_by_its_intensity(counted: tuple[Counting, Inputs]) -> None:
    library, inputs = counted
    prepare("mix", 4, 0.75, 0.5, inputs)()
    assert library.products == 96 * 256 * 256
    assert library.triads == 256**3 / 2 / 8


def test_longer_inputs_are_made_where_a_product_needs_them() -> None:
    inputs = Inputs(Blas())
    size = RING / BLOCK * 1.1
    prepare("matmul", size, 1, 0.01, inputs)()
    assert len(inputs.a) >= size * BLOCK
    prepare("triad", 1, 0, 1, inputs)()


class Broken(Blas):
    """Computes everything, and one element wrongly."""

    def multiply(self, left: Any, right: Any, out: Any) -> None:
        super().multiply(left, right, out)
        out[0, 0] += 1000

    def triad(self, a: Any, b: Any, factor: float, out: Any) -> None:
        super().triad(a, b, factor, out)
        out[-1] += 1000

    def transform(self, rows: Any) -> Any:
        found = super().transform(rows)
        found[-1, 0] += 2 * POINTS
        return found

    def sort(self, rows: Any) -> Any:
        found = super().sort(rows)
        found[-1, 0], found[-1, 1] = found[-1, 1] + 0.5, found[-1, 0]
        return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_result_is_noticed(kind: str) -> None:
    with pytest.raises(WrongResult, match=r"off by|rising order"):
        prepare(kind, 1, 0.5, 1, Inputs(Broken()))()


def test_the_memory_of_a_task_is_copied_whole() -> None:
    copied = []

    class Copying(Blas):
        def copy(self, source: Any, target: Any) -> None:
            super().copy(source, target)
            copied.append(source.nbytes)
            assert (source == target).all()

    Inputs(Copying()).transfer(80.0)()
    assert sum(copied) == 80_000_000
