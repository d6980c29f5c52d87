"""An arena to measure, and its processes: their CPU time and their memory."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.arena import ArenaProcess


@contextmanager
def running_arena(*arguments: str) -> Iterator[ArenaProcess]:
    """In a folder that is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder:
        arena = ArenaProcess(Path(folder) / "arena", *arguments)
        try:
            yield arena
        finally:
            arena.stop()


def processes(arena: ArenaProcess) -> dict[str, psutil.Process]:
    """The arena's processes by name, the supervisor aside."""
    named = {}
    for child in arena.processes(""):
        command = " ".join(child.cmdline())
        service = re.search(r"services\.(\w+)(?: scheduler-(\S+))?", command)
        if service:
            name = " ".join(filter(None, service.groups()))
            if name == "scheduler":  # of a version without titles
                name += f" {child.environ()['HYBRID_POLICY']}"
        elif "deploy.local.clickhouse" in command:
            name = "clickhouse"
        elif "nats-server" in command:
            name = Path(child.cmdline()[-1]).stem
        elif "deploy.local.fork_server" in command:
            name = "fork server"
        else:
            continue  # a device of the executor
        named[name] = child
    return named


def cpu_seconds(arena: ArenaProcess) -> dict[str, float]:
    """CPU time that each process has taken so far."""
    spent = {}
    for name, process in processes(arena).items():
        times = process.cpu_times()
        spent[name] = times.user + times.system
    return spent


def memory_in_use(arena: ArenaProcess) -> dict[str, Any]:
    """PSS divides shared pages among the processes, so it may be summed."""
    used = {
        name: round(process.memory_full_info().pss / 2**20)
        for name, process in processes(arena).items()
    }
    return {"pss_mib": used, "total_mib": sum(used.values())}
