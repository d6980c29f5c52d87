"""Decisions on two devices, and jobs made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from services.executor.jobs import Job, make_jobs
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.messages import batches

ACCELERATOR, CPU = 0, 1


def real_spec(**fields: Any) -> RunSpec:
    devices = [
        {
            "type": "fast",
            "watts": 50,
            "dollars_per_s": 0.5,
            "bandwidth_mb_s": 1e6,
            "real": {"cores": [0]},
        },
        {"type": "cpu", "watts": 20, "dollars_per_s": 0.25, "real": {"cores": [0]}},
    ]
    return RunSpec.parse({"execution": "real", "cluster": {"devices": devices}, **fields})


def decided(
    share: Sequence[float], expected: Sequence[float] | None = None, **columns: Any
) -> pa.RecordBatch:
    """Tasks of size 1000 and intensity 0.5, which take a second on the CPU."""
    count = len(share)
    tasks = Tasks(
        task_id=np.arange(count),
        size=np.full(count, 1000.0),
        compute_intensity=np.full(count, 0.5),
        memory_required=np.full(count, 100.0),
        arrival_time=np.zeros(count),
        **columns,
    )
    decisions = Decisions(
        gpu_fraction=np.array(share),
        expected_time=None if expected is None else np.array(expected),
    )
    return batches.decision_rows(batches.task_rows(tasks), tasks, decisions, real_spec().platform)


def jobs_of(rows: pa.RecordBatch, spec: RunSpec | None = None, attempt: int = 1) -> list[Job]:
    ids = batches.column(rows, "task_id").tolist()
    return make_jobs(rows, spec or real_spec(), dict.fromkeys(ids, attempt))
