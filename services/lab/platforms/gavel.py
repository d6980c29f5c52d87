"""Import of Gavel's `simulation_throughputs.json`: steps per second of deep-learning jobs.

The file has, for each device type, the throughput of each (job type, number of devices) alone
(key `null`) and beside another job. A kind is a job type with its number of devices, a task's size
is its number of steps, and its width that number of devices.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from services.lab.platforms.data_sheets import assumptions, describe
from services.lab.platforms.imported import Imported, ImportFailed, digits
from shared.domain.hardware.measured_times import Curve

ALONE = "null"
SPREAD = "_unconsolidated"  # a job's devices are in several nodes


def kind_of(job_type: str, devices: int) -> str:
    """
    >>> kind_of("ResNet-18 (batch size 32)", 2)
    'ResNet-18 (batch size 32) x2'
    """
    return f"{job_type} x{devices}"


def import_gavel(source: Path, name: str) -> Imported:
    tables = _read(source)
    types = [each for each in tables if not each.endswith(SPREAD)]
    curves, impossible, pairs, widest = [], [], 0, 1
    for device_type in types:
        for key, throughputs in tables[device_type].items():
            job_type, devices = _job(key, source)
            widest = max(widest, devices)
            pairs += len(throughputs) - (ALONE in throughputs)
            steps_per_s = throughputs.get(ALONE)
            if not isinstance(steps_per_s, int | float) or steps_per_s <= 0:
                impossible.append(f"{kind_of(job_type, devices)} on {device_type}")
                continue
            # One point: the time is proportional to the number of steps.
            curves.append(
                Curve(
                    kind=kind_of(job_type, devices),
                    type=device_type,
                    sizes=(1,),
                    seconds=(digits(1 / steps_per_s),),
                )
            )
    if not curves:
        raise ImportFailed(f"{source}: no throughput of a job alone on a device (key {ALONE!r})")
    kinds = {curve.kind for curve in curves}
    left_out = [f"{pairs:,} throughputs of two jobs that share a device: tasks do not share here"]
    if impossible:
        left_out.append(f"throughput 0, so it cannot run there: {', '.join(impossible)}")
    if spread := [each for each in tables if each.endswith(SPREAD)]:
        left_out.append(f"{', '.join(spread)}: jobs whose devices are in several nodes")
    return Imported(
        {
            "name": name,
            "description": "Deep-learning jobs of Gavel; a task's size is its number of steps.",
            "sources": [f"throughputs: {source.name} of Gavel (Narayanan et al., OSDI 2020)"],
            "cluster": {
                "devices": [describe(each, count=widest, accelerator=True) for each in types]
            },
        },
        tuple(curves),
        took=[
            f"{len(curves)} throughputs of {len(kinds)} kinds (job type and number of devices) on "
            f"{', '.join(types)}"
        ],
        left_out=left_out,
        assumed=[
            *(f"count of {each}: {widest}, what the widest job needs" for each in types),
            *assumptions(dict.fromkeys(types, ())),
            "no CPU: every job needs an accelerator",
        ],
    )


def _read(source: Path) -> dict[str, dict[str, Any]]:
    try:
        tables = json.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise ImportFailed(f"{source}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ImportFailed(f"{source}: not JSON: {error}") from None
    expected = "an object by device type of objects by job, such as simulation_throughputs.json"
    if not isinstance(tables, dict) or not tables:
        raise ImportFailed(f"{source}: should be {expected}")
    for table in tables.values():
        jobs = table.values() if isinstance(table, dict) else [None]
        if not all(isinstance(throughputs, dict) for throughputs in jobs):
            raise ImportFailed(f"{source}: should be {expected}")
    return tables


def _job(key: str, source: Path) -> tuple[str, int]:
    """From a key such as "('A3C', 1)"."""
    try:
        job_type, devices = ast.literal_eval(key)
        return str(job_type), int(devices)
    except (ValueError, SyntaxError, TypeError):
        message = f"{source}: {key!r} is no job; expected such as \"('A3C', 1)\""
        raise ImportFailed(message) from None
