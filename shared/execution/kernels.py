"""The computations that tasks of real runs perform, by kind.

A task of size N (times the device's `scale`) works on blocks of 16,384 float32 elements, N of each
operand:

    matmul  the product of two matrices of edge e = 128 sqrt(N)                 compute bound
    triad   e^3 / 2 elements of a + s b, in arrays larger than the caches       memory bound
    fft     16 N transforms of 1024 points                                      in between
    sort    N blocks, each sorted                                               branches
    mix     by its compute intensity I: I of the product, 1 - I of the triad

With this, the times of a mix follow the physics: they grow with the size to the power of 1.5, and a
library made for products speeds up the more, the higher the intensity. A share of a task is that
share of the rows, elements, transforms or blocks.

Inputs are prepared before the clock starts. Each kernel checks all of its result against a value
that is computed in another way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from shared.execution.libraries import Array, Library

BLOCK = 16_384
EDGE_OF_SIZE_1 = 128
POINTS = 1024  # of a transform
RING = 256 * BLOCK  # elements of each array that is read again and again: 16 MB
CHUNK = 4 * BLOCK  # elements computed at once: they stay in a core's own cache
FACTOR = 3.0  # of the triad
STAGING = 2 * RING  # elements of the buffers that a task's memory is copied between
MB = 1e6 / 4  # elements of a float32 array

Run = Callable[[], None]


class WrongResult(Exception):
    """The device computed something else than it should have."""


class Inputs:
    """The arrays of a device: made once, and made again when a task needs longer ones."""

    def __init__(self, library: Library, *, copies: bool = True) -> None:
        """`copies`: whether the memory of tasks will be copied to the device."""
        self.library = library
        self._random = np.random.default_rng(1)
        self._make(RING)
        self._position = 0
        self._host = self._random.random(STAGING if copies else 0, dtype=np.float32)
        self._device = library.empty(STAGING if copies else 0)

    def matrices(self, edge: int) -> tuple[Array, Array, Array]:
        """Two factors and room for their product."""
        elements = edge * edge
        if elements > len(self.a):
            self._make(elements)
        left, right, out = (
            each[:elements].reshape(edge, edge) for each in (self.a, self.b, self.out)
        )
        return left, right, out

    def chunks(self, elements: int) -> Iterator[tuple[int, int]]:
        """First element and length of pieces of the ring, beginning where the last task ended, so
        that no task finds its data in a cache."""
        while elements > 0:
            start = self._position
            length = min(CHUNK, elements)
            yield start, length
            elements -= length
            self._position = (start + CHUNK) % RING

    def transfer(self, memory_mb: float) -> Run:
        """Copies that much from the host to the device, piece by piece through a buffer."""
        library, total = self.library, round(memory_mb * MB)

        def run() -> None:
            remaining = total
            position = 0
            while remaining > 0:
                length = min(remaining, STAGING - position)
                piece = slice(position, position + length)
                library.copy(self._host[piece], self._device[piece])
                remaining -= length
                position = (position + length) % STAGING
            library.finish()

        return run

    def _make(self, elements: int) -> None:
        self.a, self.b = (self._numbers(elements) for _ in range(2))
        self.out = self.library.empty(elements)
        # What the sum of the triad must be, by chunk.
        self.triad_sums = [
            _sum(self.a[i : i + CHUNK]) + FACTOR * _sum(self.b[i : i + CHUNK])
            for i in range(0, RING, CHUNK)
        ]

    def _numbers(self, elements: int) -> Array:
        return self.library.array(self._random.random(elements, dtype=np.float32))


def prepare(kind: str, size: float, intensity: float, share: float, inputs: Inputs) -> Run:
    """The function to time: it runs that share of the task and raises WrongResult."""
    if share <= 0:
        return lambda: None
    run = KERNELS[kind](size, intensity, share, inputs)

    def timed() -> None:
        run()
        inputs.library.finish()

    return timed


def _matmul(size: float, intensity: float, share: float, inputs: Inputs) -> Run:
    edge = max(1, round(EDGE_OF_SIZE_1 * math.sqrt(size)))
    rows = max(1, round(share * edge))
    left, right, out = inputs.matrices(edge)
    left, out = left[:rows], out[:rows]

    def run() -> None:
        inputs.library.multiply(left, right, out)
        # Freivalds' check: the product with a vector, here of ones, computed in another order.
        expected, actual = left @ right.sum(1), out.sum(1)
        _check("matmul", float(abs(expected - actual).max()), float(expected.max()))

    return run


def _triad(size: float, intensity: float, share: float, inputs: Inputs) -> Run:
    edge = EDGE_OF_SIZE_1 * math.sqrt(size)
    elements = max(1, round(share * edge**3 / 2))

    def run() -> None:
        for start, length in inputs.chunks(elements):
            piece = slice(start, start + length)
            a, b, out = inputs.a[piece], inputs.b[piece], inputs.out[piece]
            inputs.library.triad(a, b, FACTOR, out)
            if length == CHUNK:
                expected = inputs.triad_sums[start // CHUNK]
            else:
                expected = _sum(a) + FACTOR * _sum(b)
            _check("triad", abs(_sum(out) - expected), expected)

    return run


def _fft(size: float, intensity: float, share: float, inputs: Inputs) -> Run:
    transforms = max(1, round(share * size * BLOCK / POINTS))

    def run() -> None:
        for start, length in inputs.chunks(transforms * POINTS):
            rows = inputs.a[start : start + length].reshape(-1, POINTS)
            spectrum = inputs.library.transform(rows)
            # Parseval: a transform of n points has n times the energy.
            expected = POINTS * float((rows * rows).sum())
            _check("fft", abs(inputs.library.energy(spectrum) - expected), expected)

    return run


def _sort(size: float, intensity: float, share: float, inputs: Inputs) -> Run:
    elements = max(1, round(share * size * BLOCK))

    def run() -> None:
        for start, length in inputs.chunks(elements):
            rest = length % BLOCK
            end = start + length
            if length > rest:
                sort_rows(inputs.a[start : end - rest].reshape(-1, BLOCK))
            if rest:
                sort_rows(inputs.a[end - rest : end].reshape(1, rest))

    def sort_rows(rows: Array) -> None:
        ordered = inputs.library.sort(rows)
        if not bool((ordered[:, 1:] >= ordered[:, :-1]).all()):
            raise WrongResult("sort: not in rising order")
        expected = _sum(rows)
        _check("sort", abs(_sum(ordered) - expected), expected)

    return run


def _mix(size: float, intensity: float, share: float, inputs: Inputs) -> Run:
    parts = (
        prepare("matmul", size, 1, share * intensity, inputs),
        prepare("triad", size, 0, share * (1 - intensity), inputs),
    )

    def run() -> None:
        for part in parts:
            part()

    return run


KERNELS: dict[str, Callable[[float, float, float, Inputs], Run]] = {
    "matmul": _matmul,
    "triad": _triad,
    "fft": _fft,
    "sort": _sort,
    "mix": _mix,
}


def _sum(values: Array) -> float:
    return float(values.sum())


def _check(kind: str, difference: float, expected: float) -> None:
    # A NaN fails too. Sums in float32 agree to about 1e-5.
    if not difference <= 1e-4 * abs(expected):
        raise WrongResult(f"{kind}: wrong result, off by {difference / expected:.2g}")
