"""The result tables of an experiment: small, however long its runs are.

`collect.py` fills them from ClickHouse; the report is made from them alone, and users get them as
CSV and Parquet. Every row belongs to a variant and a seed. They contain aggregates over intervals,
quantiles and samples, so a run of a million tasks has as many rows as one of a thousand.
"""

from __future__ import annotations

import pyarrow as pa

# A scheduler has recovered when its time over the next RECOVERY_WINDOW tasks is at most
# RECOVERY_RATIO times the Oracle's.
RECOVERY_RATIO, RECOVERY_WINDOW = 1.1, 50

# The column of the outcomes that each measure ranks schedulers by: the least is the best.
MEASURES = {
    "turnaround": "avg_turnaround",
    "time": "total_time",
    "makespan": "makespan",
    "energy": "total_energy",
    "cost": "total_cost",
}

_RUN = [("variant", pa.string()), ("seed", pa.int64())]
_SCHEDULER = [*_RUN, ("scheduler", pa.string())]

# One row per scheduler and seed: totals of the judged tasks. Failed tasks are among them, at what
# they were charged.
OUTCOMES = pa.schema(
    [
        *_SCHEDULER,
        ("run", pa.string()),
        ("tasks", pa.int64()),  # judged tasks
        ("failed", pa.int64()),
        ("total_time", pa.float64()),  # seconds of execution
        ("avg_time", pa.float64()),
        ("avg_wait", pa.float64()),
        ("avg_turnaround", pa.float64()),
        ("p95_turnaround", pa.float64()),  # at most 0.8 % off, see shared/domain/quantile_sketch
        ("p99_turnaround", pa.float64()),
        ("avg_slowdown", pa.float64()),  # bounded; null where only a part of the run is judged
        ("total_energy", pa.float64()),  # joules, of working devices
        ("energy_with_idle", pa.float64()),  # of idle devices too; null as for the slowdown
        ("total_cost", pa.float64()),  # dollars, by the cost model of the run
        ("makespan", pa.float64()),  # from the first judged arrival to the last finish
        ("arrival_bound", pa.float64()),  # no makespan is below
        ("critical_path", pa.float64()),  # the longest chain of parents; null without dependencies
        ("gpu_share", pa.float64()),  # mean share of a task that was given to an accelerator
        ("gpu_tasks", pa.int64()),  # tasks with any such share
        ("explored", pa.int64()),
        ("recovered_after", pa.int64()),  # tasks until it has recovered; null: never
    ]
)

# 201 evenly spaced quantiles of a figure: a CDF, and enough for a box plot.
QUANTILES = pa.schema(
    [
        *_SCHEDULER,
        ("figure", pa.string()),  # turnaround, time, wait
        ("level", pa.float64()),  # 0..1
        ("value", pa.float64()),  # seconds
    ]
)

# The complete run in at most 200 intervals of equally many tasks.
COURSE = pa.schema(
    [
        *_SCHEDULER,
        ("first_task", pa.int64()),
        ("tasks", pa.int64()),
        ("arrival", pa.float64()),  # of the interval's last task, simulated seconds
        ("time", pa.float64()),  # sum over the interval
        ("oracle_time", pa.float64()),  # the Oracle's sum over the same tasks; null without it
        ("wait", pa.float64()),
        ("energy", pa.float64()),
        ("gpu_share", pa.float64()),
    ]
)

# A sample of the stream (at most 5000 tasks per variant and seed, evenly spaced, in task order).
WORKLOAD = pa.schema(
    [
        *_RUN,
        ("task_id", pa.int64()),
        ("size", pa.float64()),
        ("compute_intensity", pa.float64()),
        ("memory_required", pa.float64()),
        ("arrival_time", pa.float64()),
        ("cpu_time", pa.float64()),  # expected seconds of the complete task on the fastest CPU
        ("gpu_time", pa.float64()),  # on the fastest accelerator, transfer included
        ("fastest", pa.string()),  # the device type on which it is expected to be fastest
        ("extrapolated", pa.bool_()),  # its size is outside of the measured ones on some type
        ("judged", pa.bool_()),
    ]
)

# The first judged tasks with the ids of their parents (at most 300 rows): the dependency graph.
GRAPH = pa.schema([*_RUN, ("task_id", pa.int64()), ("parents", pa.list_(pa.int64()))])

# Every trained model, shipped or kept back.
MODELS = pa.schema(
    [
        *_RUN,
        ("name", pa.string()),
        ("version", pa.int64()),
        ("shipped", pa.bool_()),
        ("reason", pa.string()),
        ("score", pa.float64()),
        ("champion_score", pa.float64()),
        ("last_task", pa.int64()),  # newest task it was trained on
        ("trained_on", pa.int64()),
    ]
)

# Columns that tables of earlier versions do not have: they are read as null.
ADDED = {"avg_slowdown", "energy_with_idle", "fastest", "extrapolated", "critical_path"}

TABLES: dict[str, pa.Schema] = {
    "outcomes": OUTCOMES,
    "quantiles": QUANTILES,
    "course": COURSE,
    "workload": WORKLOAD,
    "graph": GRAPH,
    "models": MODELS,
}
