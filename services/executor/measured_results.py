"""The results of a batch, made from measurements, and the totals after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from services.executor.clock import SchedulerClock
from services.executor.jobs import Job, Part
from shared.domain.cluster.virtual_cluster import Schedule
from shared.domain.hardware.platform import Platform
from shared.domain.physics import price_of_parts
from shared.domain.tasks import Floats
from shared.domain.times import seconds
from shared.messages import batches
from shared.messages.checkpoint import Checkpoint, result_columns


@dataclass(frozen=True, slots=True)
class _Column:
    """One of the two parts of each job; zeros where a job has none."""

    start: Floats
    time: Floats
    transfer: Floats
    energy: Floats


def add_results(
    checkpoint: Checkpoint, decisions: pa.RecordBatch, jobs: Sequence[Job], clock: SchedulerClock
) -> tuple[pa.RecordBatch, Checkpoint]:
    """The rows of a batch whose jobs have all finished, and the checkpoint after it. `jobs` in the
    order of the rows."""
    spec, tasks = checkpoint.spec, batches.tasks_of(decisions)
    share = batches.column(decisions, "gpu_fraction")
    chosen = (batches.column(decisions, name).astype(np.int64) for name in ("device", "cpu"))
    device, cpu = spec.platform.complete(tasks.task_id, share, *chosen)
    gpu = _measured([job.accelerator for job in jobs], jobs, spec.platform, clock)
    rest = _measured([job.cpu for job in jobs], jobs, spec.platform, clock)
    finish = np.array([job.finish for job in jobs], np.float64)
    priced = price_of_parts(
        tasks,
        spec,
        spec.platform.type_of[device],
        spec.platform.type_of[cpu],
        gpu.time,
        rest.time,
        gpu.energy + rest.energy,
        np.array([job.failed for job in jobs]),
        seconds(tasks, spec).min(axis=1),
    )
    measured = {
        "transfer_time": gpu.transfer + rest.transfer,
        "reason": [job.reason for job in jobs],
        "attempt": [job.attempt for job in jobs],
        "energy_measured": [_is_energy_measured(job) for job in jobs],
    }
    schedule = Schedule(gpu.start, rest.start, finish)
    rows = batches.result_rows(decisions, result_columns(tasks, priced, schedule) | measured)
    cluster = checkpoint.cluster.copy()
    for part in (part for job in jobs for part in job.parts):
        if part.measured is not None:
            end = clock.at(part.measured.ended)
            cluster.free[part.device] = max(cluster.free[part.device], end)
    cluster.advance(tasks, finish)
    standing, sketch = checkpoint.add_up(tasks, device, cpu, priced, finish)
    return rows, Checkpoint(spec, cluster, standing, sketch, checkpoint.next_batch + 1)


def in_task_order(jobs: Sequence[Job]) -> list[Job]:
    return sorted(jobs, key=lambda job: job.task_id)


def _measured(
    parts: Sequence[Part | None], jobs: Sequence[Job], platform: Platform, clock: SchedulerClock
) -> _Column:
    # A part that a task does not have gets the task's arrival as its start.
    start = np.array([job.arrival for job in jobs], np.float64)
    time, transfer, energy = (np.zeros(len(jobs)) for _ in range(3))
    for row, part in enumerate(parts):
        if part is None or (measured := part.measured) is None:
            continue
        start[row] = clock.at(measured.started)
        time[row] = measured.ended - measured.started
        transfer[row] = measured.transfer_s
        if measured.energy_j is None:
            energy[row] = platform.watts[platform.type_of[part.device]] * time[row]
        else:
            energy[row] = measured.energy_j
    return _Column(start, time, transfer, energy)


def _is_energy_measured(job: Job) -> bool:
    measured = [part.measured for part in job.parts if part.measured is not None]
    return bool(measured) and all(each.energy_j is not None for each in measured)
