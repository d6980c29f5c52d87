"""What an experiment leaves behind: a few small tables, whatever the length of its runs.

`collect.py` fills them from ClickHouse, the report is made from them alone, and they are handed
out as CSV and Parquet. Every row belongs to a variant of the experiment and a seed. Stretches of
the stream are summed up, the rest is quantiles or samples, so a run of a million tasks gives as
many rows as one of a thousand.
"""

from __future__ import annotations

import pyarrow as pa

_WHICH = [("variant", pa.string()), ("seed", pa.int64())]
_WHO = [*_WHICH, ("scheduler", pa.string())]

# One row per scheduler and seed: the judged tasks summed up.
OUTCOMES = pa.schema(
    [
        *_WHO,
        ("run", pa.string()),
        ("tasks", pa.int64()),  # judged ones
        ("failed", pa.int64()),
        ("total_time", pa.float64()),  # seconds of execution
        ("avg_time", pa.float64()),
        ("avg_wait", pa.float64()),
        ("avg_turnaround", pa.float64()),
        ("p95_turnaround", pa.float64()),
        ("p99_turnaround", pa.float64()),
        ("total_energy", pa.float64()),  # joules
        ("total_cost", pa.float64()),  # dollars, by the cost model of the run
        ("makespan", pa.float64()),  # from the first judged arrival to the last finish
        ("bound", pa.float64()),  # the cluster bound of the judged tasks: no makespan is below
        ("arrival_bound", pa.float64()),  # the same, knowing when tasks arrive: tighter
        ("gpu_share", pa.float64()),  # mean share of a task that ran on a GPU
        ("gpu_tasks", pa.int64()),  # tasks with any share on a GPU
        ("explored", pa.int64()),
        ("recovered_after", pa.int64()),  # tasks, see recovery.py; null: never
    ]
)

# 201 evenly spaced quantiles of a figure: a CDF, and enough for a box plot.
QUANTILES = pa.schema(
    [
        *_WHO,
        ("figure", pa.string()),  # turnaround, time, wait
        ("level", pa.float64()),  # 0..1
        ("value", pa.float64()),  # seconds
    ]
)

# The whole run in at most 200 stretches of equal length, for what happens over time.
COURSE = pa.schema(
    [
        *_WHO,
        ("first_task", pa.int64()),
        ("tasks", pa.int64()),
        ("arrival", pa.float64()),  # of the stretch's last task, simulated seconds
        ("time", pa.float64()),  # sum over the stretch
        ("oracle_time", pa.float64()),  # the Oracle's sum over the same tasks; null without it
        ("wait", pa.float64()),
        ("energy", pa.float64()),
        ("gpu_share", pa.float64()),
    ]
)

# A sample of the stream (at most 5000 tasks per variant and seed, evenly spaced, in task order).
WORKLOAD = pa.schema(
    [
        *_WHICH,
        ("task_id", pa.int64()),
        ("size", pa.float64()),
        ("compute_intensity", pa.float64()),
        ("memory_required", pa.float64()),
        ("arrival_time", pa.float64()),
        ("cpu_time", pa.float64()),  # the whole task on a CPU, seconds
        ("gpu_time", pa.float64()),  # the whole task on a GPU, transfer included
        ("judged", pa.bool_()),
    ]
)

# The first judged tasks as a stretch without gaps, with the ids they wait for (at most 300 rows):
# the dependency graph.
GRAPH = pa.schema([*_WHICH, ("task_id", pa.int64()), ("parents", pa.list_(pa.int64()))])

# Every model that was made, shipped or kept back.
MODELS = pa.schema(
    [
        *_WHICH,
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

TABLES: dict[str, pa.Schema] = {
    "outcomes": OUTCOMES,
    "quantiles": QUANTILES,
    "course": COURSE,
    "workload": WORKLOAD,
    "graph": GRAPH,
    "models": MODELS,
}
