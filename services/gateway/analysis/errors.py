"""How far the times that a scheduler expected were from the real ones, by device type, over a run.

A run is cut into equal stretches of tasks. Only a block in the middle of a long one is read, so
that the cost does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from services.gateway.analysis.device_work import integers
from services.gateway.analysis.schemas import ErrorTrack, TypeErrors
from services.gateway.analysis.task_window import floats
from services.gateway.runs.queries import newest_standings
from services.gateway.tasks.device_names import cpus_of
from shared.domain.hardware.platform import Platform
from shared.domain.tasks import Floats, Integers
from shared.store.client import Store

# Tasks that ran completely on one device.
RESULTS = """
    SELECT task_id, if(gpu_time > 0, device, cpu) AS device, time, expected_time
    FROM scheduler_results
    WHERE run = {run:String} AND scheduler = {scheduler:String} AND (%s)
      AND expected_time > 0 AND time > 0 AND status = 'ok' AND (gpu_time > 0) != (cpu_time > 0)
    ORDER BY run, scheduler, task_id
    LIMIT 1 BY task_id
"""
STRETCHES = 60
# Fewer tasks would show chance, not error.
LEAST_IN_STRETCH, MOST_IN_STRETCH = 50, 1000

Range = tuple[int, int]  # the first task, and one past the last


def error_tracks(
    store: Store, run: str, schedulers: Iterable[str], platform: Platform
) -> dict[str, ErrorTrack]:
    """The errors of each scheduler that expects times."""
    tracks = {}
    for name, newest in newest_standings(store, run, schedulers).items():
        track = _track(store, {"run": run, "scheduler": name}, newest["tasks"], platform)
        if track.types:
            tracks[name] = track
    return tracks


def _track(store: Store, key: dict[str, Any], tasks: int, platform: Platform) -> ErrorTrack:
    ranges = stretches(tasks)
    blocks = [middle(each) for each in ranges]
    between = (f"(task_id >= {first} AND task_id < {last})" for first, last in blocks)
    rows: pa.Table = store.table(RESULTS % " OR ".join(between), key)
    task_id = integers(rows, "task_id")
    kind = platform.type_of[cpus_of(integers(rows, "device"), task_id, platform)]
    error = np.abs(np.log(floats(rows, "time") / floats(rows, "expected_time")))
    stretch = np.searchsorted([last for _, last in ranges], task_id, side="right")
    return ErrorTrack(
        first=[first for first, _ in ranges],
        last=[last for _, last in ranges],
        types={
            platform.types[number].name: _of_type(error, stretch, kind == number, len(ranges))
            for number in np.unique(kind)
        },
        exact=blocks == ranges,
    )


def _of_type(error: Floats, stretch: Integers, own: Any, count: int) -> TypeErrors:
    error, stretch = error[own], stretch[own]
    groups = np.split(error, np.searchsorted(stretch, np.arange(1, count)))
    return TypeErrors(
        error=[float(np.expm1(np.median(each))) if len(each) else None for each in groups],
        tasks=[len(each) for each in groups],
    )


def stretches(tasks: int) -> list[Range]:
    """Equal parts of the first `tasks` tasks; few tasks have fewer parts.

    >>> stretches(100), len(stretches(10**6)), stretches(10**6)[-1]
    ([(0, 50), (50, 100)], 60, (983333, 1000000))
    """
    count = min(max(tasks // LEAST_IN_STRETCH, 1), STRETCHES)
    edges = [number * tasks // count for number in range(count + 1)]
    return list(pairwise(edges))


def middle(tasks: Range) -> Range:
    """A short range completely; of a long one, the block in its middle.

    >>> middle((0, 1000)), middle((0, 3000))
    ((0, 1000), (1000, 2000))
    """
    first, last = tasks
    if last - first <= MOST_IN_STRETCH:
        return tasks
    begin = (first + last - MOST_IN_STRETCH) // 2
    return begin, begin + MOST_IN_STRETCH
