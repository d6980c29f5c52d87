"""What every device did in a run, in the Trace Event Format that Perfetto and Chrome open.

Each scheduler is a process and each of its devices a thread. Written a stretch of tasks at a time:
memory does not grow with the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from services.gateway.tasks.device_names import cpus_of
from services.gateway.tasks.ledger import result_tables
from shared.domain.hardware.platform import Platform
from shared.store.client import Store

MICROSECONDS = 1e6


def device_trace(
    store: Store, run: str, schedulers: Sequence[str], platform: Platform
) -> Iterator[bytes]:
    yield b'{"displayTimeUnit":"ms","traceEvents":[\n'
    yield _lines(_names(schedulers, platform))
    process = {name: number for number, name in enumerate(schedulers, 1)}
    for table in result_tables(store, run, schedulers):
        rows = table.to_pylist()
        if rows:
            cpu = np.array([row["cpu"] for row in rows], np.int64)
            task_id = np.array([row["task_id"] for row in rows], np.int64)
            cpus = cpus_of(cpu, task_id, platform).tolist()
            events = (
                event
                for row, cpu in zip(rows, cpus, strict=True)
                for event in _parts(row, process[row["scheduler"]], cpu, platform)
            )
            yield b",\n" + _lines(events)
    yield b"\n]}\n"


def _lines(events: Iterator[dict[str, Any]]) -> bytes:
    return ",\n".join(json.dumps(event, separators=(",", ":")) for event in events).encode()


def _names(schedulers: Sequence[str], platform: Platform) -> Iterator[dict[str, Any]]:
    devices = platform.device_names(range(len(platform)))
    for process, scheduler in enumerate(schedulers, 1):
        yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": scheduler}}
        for number, device in enumerate(devices, 1):
            named = {"ph": "M", "pid": process, "tid": number}
            yield {**named, "name": "thread_name", "args": {"name": device}}
            yield {**named, "name": "thread_sort_index", "args": {"sort_index": number}}


def _parts(
    row: dict[str, Any], process: int, cpu: int, platform: Platform
) -> Iterator[dict[str, Any]]:
    """The task's part on an accelerator and its part on a CPU, on each device that it took."""
    details = {
        name: row[name]
        for name in ("size", "arrival_time", "wait", "turnaround", "energy", "cost", "status")
    }
    for part, device in (("gpu", row["device"]), ("cpu", cpu)):
        length = row[f"{part}_time"]
        if not length > 0:
            continue
        for each in platform.gang(device, row["width"] or 1):
            yield {
                "ph": "X",
                "name": f"task {row['task_id']}",
                "cat": part,
                "pid": process,
                "tid": each + 1,
                "ts": row[f"{part}_start"] * MICROSECONDS,
                "dur": length * MICROSECONDS,
                "args": {"task": row["task_id"], "share": row["gpu_fraction"], **details},
            }
