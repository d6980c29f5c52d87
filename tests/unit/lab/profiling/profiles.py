"""Hardware profiles with figures that are easy to calculate with."""

from __future__ import annotations

from typing import Any


def timing(seconds: float, spread: float = 0.02, **more: Any) -> dict[str, Any]:
    return {"repetitions": 5, "median_s": seconds, "spread": spread, **more}


# Edges 512, 1024, 2048 are sizes 16, 64, 256. With a unit of 64 they take, at intensity 1,
# (1/4)^1.5 / 1.5 = 1/12, 1 / 1.5 = 2/3 and 4^1.5 / 1.5 = 16/3 seconds.
TIMES = {512: 1 / 12, 1024: 2 / 3, 2048: 16 / 3}


def profile(gpu: bool = False, **changes: Any) -> dict[str, Any]:
    """A CPU with a unit of 64 and, if wanted, two GPUs ten times as fast at 12,800 MB/s."""
    data: dict[str, Any] = {
        "version": 1,
        "measured_at": "2026-01-02T03:04:05Z",
        "dtype": "float32",
        "machine": {
            "system": "Linux", "cpu": "a CPU", "cores": 8, "memory_mb": 32000, "cache_mb": 32,
            "threads": 8, "blas": "openblas", "versions": {}, "environment": {}, "busy_before": 0,
        },
        "cpu": {
            "products": [timing(seconds, edge=edge) for edge, seconds in TIMES.items()],
            "copy": timing(0.02, mb=512),
            "add": timing(0.03, mb=768),
        },
    }  # fmt: skip
    if gpu:
        data["gpu"] = {
            "backend": "cuda", "name": "a GPU", "count": 2, "memory_mb": 24000,
            "products": [timing(s / 10, edge=edge) for edge, s in TIMES.items()],
            "to_device": [timing(0.001, mb=1), timing(0.02, mb=256)],
            "to_host": [timing(0.001, mb=1), timing(0.04, mb=256)],
        }  # fmt: skip
    return {**data, **changes}
