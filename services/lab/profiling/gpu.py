"""Matrix products and transfers on the GPU of this machine, with torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

Work = Callable[[], object]


class Device(Protocol):
    """Each method prepares data on a device and returns the function to time."""

    backend: str
    name: str
    count: int
    memory_mb: float
    details: dict[str, str]

    def product(self, edge: int) -> Work: ...

    def to_device(self, mb: float) -> Work: ...

    def to_host(self, mb: float) -> Work: ...


def find_device() -> Device | None:
    """The GPU that torch finds, if any. Importing torch takes seconds, so it is done here."""
    try:
        import torch
    except ImportError:
        return None
    for backend in ("cuda", "mps"):
        if getattr(torch, backend).is_available():
            return TorchDevice(backend)
    return None


class TorchDevice:
    """A backend of torch: `cuda` (also for ROCm), `mps`, or `cpu` in a test."""

    def __init__(self, backend: str) -> None:
        import torch

        self._torch: Any = torch
        self._synchronize: Callable[[], object] = getattr(torch, backend).synchronize
        self.backend = backend
        self.name, self.count, memory = self._describe()
        self.memory_mb: float = round(memory / 1e6)
        # From pinned memory a transfer reaches the full bandwidth of the link.
        self._pinned = backend == "cuda"
        self.details = {
            "torch": str(torch.__version__),
            "float32_precision": torch.get_float32_matmul_precision(),
            "host_memory": "pinned" if self._pinned else "pageable",
        }

    def _describe(self) -> tuple[str, int, float]:
        torch = self._torch
        if self.backend == "cuda":
            properties = torch.cuda.get_device_properties(0)
            return properties.name, torch.cuda.device_count(), properties.total_memory
        if self.backend == "mps":
            return "Apple GPU", 1, torch.mps.recommended_max_memory()
        import psutil

        return "CPU", 1, psutil.virtual_memory().total

    def product(self, edge: int) -> Work:
        left, right = (self._torch.rand(edge, edge, device=self.backend) for _ in range(2))
        out = self._torch.empty_like(left)
        return lambda: (self._torch.mm(left, right, out=out), self._synchronize())

    def to_device(self, mb: float) -> Work:
        host, device = self._blocks(mb)
        return lambda: (device.copy_(host), self._synchronize())

    def to_host(self, mb: float) -> Work:
        host, device = self._blocks(mb)
        return lambda: (host.copy_(device), self._synchronize())

    def _blocks(self, mb: float) -> tuple[Any, Any]:
        host = self._torch.rand(int(mb * 1e6) // 4, pin_memory=self._pinned)
        return host, host.to(self.backend)
