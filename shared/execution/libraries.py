"""The operations of the kernels on a device: plain numpy, numpy with its fastest libraries, torch.

Arrays of all of them know `+`, `@`, `sum` and comparisons, so the kernels need no more than this.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from shared.execution.settings import DeviceSetting

Array = Any  # numpy's or torch's

TILE = 256  # edge of the tiles of a plain product: three of them fit a core's own cache


class Library(Protocol):
    def array(self, values: Array) -> Array:
        """A float32 array of the device's with these values."""
        ...

    def empty(self, *shape: int) -> Array: ...

    def multiply(self, left: Array, right: Array, out: Array) -> None:
        """The product of two matrices."""
        ...

    def triad(self, a: Array, b: Array, factor: float, out: Array) -> None:
        """out = a + factor * b"""
        ...

    def transform(self, rows: Array) -> Array:
        """The discrete Fourier transform of each row."""
        ...

    def energy(self, values: Array) -> float:
        """The sum of the squares of complex values."""
        ...

    def sort(self, rows: Array) -> Array:
        """Each row in rising order."""
        ...

    def copy(self, source: Array, target: Array) -> None:
        """From the host's memory to the device's."""
        ...

    def finish(self) -> None:
        """Wait until everything above is done."""
        ...


class Blas:
    """numpy as it is: BLAS, pocketfft, vectorised sorting."""

    def array(self, values: Array) -> Array:
        return np.asarray(values, np.float32)

    def empty(self, *shape: int) -> Array:
        # Written once, so that the first task does not wait for pages of memory.
        return np.full(shape, 0, np.float32)

    def multiply(self, left: Array, right: Array, out: Array) -> None:
        np.matmul(left, right, out=out)

    def triad(self, a: Array, b: Array, factor: float, out: Array) -> None:
        np.multiply(b, np.float32(factor), out=out)
        np.add(a, out, out=out)

    def transform(self, rows: Array) -> Array:
        return np.fft.fft(rows)

    def energy(self, values: Array) -> float:
        parts = values.view(np.float32).ravel()
        return float(np.dot(parts, parts))

    def sort(self, rows: Array) -> Array:
        return np.sort(rows)

    def copy(self, source: Array, target: Array) -> None:
        np.copyto(target, source)

    def finish(self) -> None:
        pass


class Plain(Blas):
    """numpy without libraries made for the purpose: several times slower where there is much to
    compute, as fast where memory is the limit."""

    def multiply(self, left: Array, right: Array, out: Array) -> None:
        rows, inner = left.shape
        out[:] = 0
        for i in range(0, rows, TILE):
            for k in range(0, inner, TILE):
                part = left[i : i + TILE, k : k + TILE]
                for j in range(0, right.shape[1], TILE):
                    tile = right[k : k + TILE, j : j + TILE]
                    out[i : i + TILE, j : j + TILE] += np.einsum("ik,kj->ij", part, tile)

    def transform(self, rows: Array) -> Array:
        """Stockham's algorithm, radix 2; the length of a row is a power of two."""
        count, length = rows.shape
        values = rows.astype(np.complex64).reshape(count, length, 1)
        while values.shape[1] > 1:
            half = values.shape[1] // 2
            turn = np.exp(-1j * np.pi * np.arange(half) / half).astype(np.complex64)[:, None]
            low, high = values[:, :half], values[:, half:]
            step = np.empty((count, half, 2, values.shape[2]), np.complex64)
            np.add(low, high, out=step[:, :, 0])
            np.multiply(low - high, turn, out=step[:, :, 1])
            values = step.reshape(count, half, 2 * values.shape[2])
        return values.reshape(count, length)

    def sort(self, rows: Array) -> Array:
        return np.sort(rows, kind="stable")


class Torch:
    """A device that torch finds: `cuda`, `mps`, `xpu`; `cpu` in tests."""

    def __init__(self, device: str, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        self._torch: Any = torch
        self._device = torch.device(device)
        # Pinned memory reaches the full bandwidth of the link.
        self._pinned = self._device.type == "cuda"
        torch.zeros(1, device=self._device)  # raises where there is no such device

    def array(self, values: Array) -> Array:
        return self._torch.as_tensor(np.asarray(values, np.float32), device=self._device)

    def empty(self, *shape: int) -> Array:
        return self._torch.zeros(shape, dtype=self._torch.float32, device=self._device)

    def multiply(self, left: Array, right: Array, out: Array) -> None:
        self._torch.matmul(left, right, out=out)

    def triad(self, a: Array, b: Array, factor: float, out: Array) -> None:
        self._torch.add(a, b, alpha=factor, out=out)

    def transform(self, rows: Array) -> Array:
        return self._torch.fft.fft(rows)

    def energy(self, values: Array) -> float:
        return float(self._torch.view_as_real(values).square().sum())

    def sort(self, rows: Array) -> Array:
        return self._torch.sort(rows, dim=-1).values

    def copy(self, source: Array, target: Array) -> None:
        host = self._torch.as_tensor(source)
        target.copy_(host.pin_memory() if self._pinned else host)

    def finish(self) -> None:
        if self._device.type != "cpu":
            getattr(self._torch, self._device.type).synchronize()


def library_of(device: DeviceSetting) -> Library:
    threads = device.threads or len(device.cores)
    if device.torch_device is not None:
        return Torch(device.torch_device, threads)
    return Plain() if device.library == "plain" else Blas()
