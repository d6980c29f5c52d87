"""A task that is run for real, as one or two parts, each on a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from shared.domain.cluster.cluster_tracker import expected_parts
from shared.domain.physics import price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks, known_last_child
from shared.domain.times import seconds
from shared.execution.device_process import Measured, Work
from shared.messages import batches

DEFAULT_KIND = "mix"  # of tasks without one: a kernel that depends on their intensity

# A task that was running each time the executor died may be the cause.
MOST_ATTEMPTS = 3
RAN_AGAIN = "ran again: it was under way when the executor was interrupted"
GIVEN_UP = f"the executor was interrupted {MOST_ATTEMPTS} times while it was under way"
TOO_WIDE = "a task of a real run takes one device"
NO_DEVICE = "it cannot run on the devices that it was given, or does not fit their memory"


@dataclass(slots=True, eq=False)
class Part:
    task_id: int
    turn: int  # devices serve lower ones first
    device: int
    work: Work
    expected: float  # seconds, by the scheduler's own estimate
    measured: Measured | None = None


@dataclass(slots=True, eq=False)
class Job:
    task_id: int
    arrival: float
    last_child: int  # id of the last task that may depend on it
    accelerator: Part | None
    cpu: Part | None
    attempt: int
    reason: str = ""  # why it failed or ran again
    failed: bool = False
    finish: float | None = None  # on the scheduler's clock
    waits_for: set[int] = field(default_factory=set)  # parents that have not finished

    @property
    def parts(self) -> list[Part]:
        return [part for part in (self.accelerator, self.cpu) if part is not None]

    def fail(self, reason: str) -> None:
        self.failed, self.reason = True, reason


def make_jobs(
    decisions: pa.RecordBatch, spec: RunSpec, attempts: Mapping[int, int], first_turn: int = 0
) -> list[Job]:
    """The jobs of a batch, in the order in which devices serve them. `attempts`: by task, the
    number of this attempt."""
    tasks = batches.tasks_of(decisions)
    share = batches.column(decisions, "gpu_fraction")
    chosen = (batches.column(decisions, name).astype(np.int64) for name in ("device", "cpu"))
    device, cpu = spec.platform.complete(tasks.task_id, share, *chosen)
    expected = price(tasks, share, spec, device, cpu, times=seconds(tasks, spec))
    on_device, on_cpu = expected.gpu_time, expected.cpu_time
    own_estimate = batches.column(decisions, "expected_time")
    if own_estimate.any():
        on_device, on_cpu = expected_parts(tasks, share, device, cpu, own_estimate, expected, spec)
    last_child, order = known_last_child(tasks), batches.order_of(decisions)
    jobs = []
    rows = range(len(tasks)) if order is None else order.tolist()
    for turn, row in enumerate(rows, first_turn):
        task_id = int(tasks.task_id[row])
        job = Job(
            task_id,
            float(tasks.arrival_time[row]),
            int(last_child[row]),
            accelerator=None,
            cpu=None,
            attempt=attempts[task_id],
            waits_for=set(tasks.parents[row]) if tasks.parents else set(),
        )
        both = expected.gpu_time[row] > 0 and expected.cpu_time[row] > 0
        if problem := _problem(job, tasks, row, bool(expected.failed[row])):
            job.fail(problem)
        else:
            job.reason = RAN_AGAIN if job.attempt > 1 else ""
            if expected.gpu_time[row] > 0:
                work = _work(tasks, row, float(share[row]) if both else 1.0)
                job.accelerator = Part(task_id, turn, int(device[row]), work, float(on_device[row]))
            if expected.cpu_time[row] > 0:
                work = _work(tasks, row, 1.0 - float(share[row]) if both else 1.0)
                job.cpu = Part(task_id, turn, int(cpu[row]), work, float(on_cpu[row]))
        jobs.append(job)
    return jobs


def _problem(job: Job, tasks: Tasks, row: int, cannot_run: bool) -> str | None:
    """Why the task cannot be started; None: it can."""
    if tasks.width is not None and tasks.width[row] > 1:
        return TOO_WIDE
    if cannot_run:
        return NO_DEVICE
    return GIVEN_UP if job.attempt > MOST_ATTEMPTS else None


def _work(tasks: Tasks, row: int, share: float) -> Work:
    return Work(
        kind=(tasks.kind[row] if tasks.kind else "") or DEFAULT_KIND,
        size=float(tasks.size[row]),
        memory_mb=float(tasks.memory_required[row]),
        intensity=float(tasks.compute_intensity[row]),
        share=share,
    )
