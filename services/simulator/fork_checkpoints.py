"""The cluster of a fork's scheduler before the fork's own first task.

No scheduler decides again: the parent's decisions are in ClickHouse, and the virtual cluster
follows from them and from the parent's spec. For a fork of a fork, the runs that it descends from
are replayed in order, each with its own tasks. Then the cluster gets the devices of the fork.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from services.simulator.simulation import Simulation
from shared.bus.forks import parent_of
from shared.bus.run_book import RunBook
from shared.domain.cluster.device_mapping import DeviceMapping, same_devices
from shared.domain.spec import RunSpec
from shared.errors import Unreadable
from shared.messages.batches import SCHEMAS, Batch, column
from shared.messages.checkpoint import idle_energy
from shared.messages.columns import DECISION, RESULT, TASK
from shared.messages.envelope import Envelope
from shared.messages.runs import Fork, RunRecord
from shared.store.client import Store

# Stored batches are simulated together up to this number of tasks: results do not depend on it.
CHUNK_TASKS = 4096

_OF_TASK = ", ".join(c.name for c in TASK if c.name not in ("task_id", "kind"))
_OF_RESULT = ", ".join(c.name for c in (*DECISION, *RESULT) if c.name != "status")
ROWS = f"""
    SELECT task_id, toString(t.kind) AS kind, {_OF_TASK}, toString(r.status) AS status, {_OF_RESULT}
    FROM (
        SELECT * FROM scheduler_results FINAL
        WHERE run = {{run:String}} AND scheduler = {{scheduler:String}}
            AND task_id >= {{first:Int64}} AND task_id < {{end:Int64}}
    ) AS r
    INNER JOIN (
        SELECT * FROM tasks FINAL
        WHERE run = {{run:String}} AND task_id >= {{first:Int64}} AND task_id < {{end:Int64}}
    ) AS t USING (task_id)
    ORDER BY task_id
"""
BATCH_STARTS = """
    SELECT min(task_id) AS first FROM tasks FINAL
    WHERE run = {run:String} AND task_id >= {first:Int64} AND task_id < {end:Int64}
    GROUP BY batch ORDER BY first
"""
LAST_BATCH_START = f"{BATCH_STARTS} DESC LIMIT 1"
COPIED = """
    SELECT uniqExact(task_id) AS tasks FROM scheduler_results
    WHERE run = {run:String} AND scheduler = {scheduler:String} AND task_id < {end:Int64}
"""


@dataclass(frozen=True, slots=True)
class TaskRange:
    """The tasks from `first` to before `end`, which the run decided itself."""

    record: RunRecord
    scheduler: str
    first: int
    end: int


async def inherited_ranges(runs: RunBook, record: RunRecord, scheduler: str) -> list[TaskRange]:
    """The tasks of other runs that the scheduler of a fork continues, oldest first."""
    newest_first: list[TaskRange] = []
    while (fork := record.fork) is not None and (parent := await parent_of(runs, record)):
        scheduler = fork.takes_over.get(scheduler, scheduler)
        first = parent.fork.at if parent.fork else 0
        newest_first.append(TaskRange(parent, scheduler, first, fork.at))
        record = parent
    return newest_first[::-1]


def is_copied(store: Store, run: str, scheduler: str, fork: Fork) -> bool:
    """Whether the recorder has copied the scheduler's results of the parent."""
    values = {"run": run, "scheduler": scheduler, "end": fork.at}
    (row,) = store.query(COPIED, values)
    return bool(row["tasks"] == fork.at)


def first_message(
    store: Store, record: RunRecord, fork: Fork, scheduler: str, inherited: list[TaskRange]
) -> Batch:
    """The last results before the fork's own, with the simulation state after them."""
    simulation = replay(store, inherited)
    (last_batch_start,) = _batch_starts(store, inherited[-1], LAST_BATCH_START)
    last = TaskRange(record, scheduler, last_batch_start, fork.at)
    rows = _read_results(store, last)
    simulation = map_to_devices(record.spec, simulation, next_batch=fork.next_batch)
    envelope = Envelope(
        "results",
        record.run,
        fork.next_batch - 1,
        # The same for every attempt, by any simulator.
        record.created_at,
        scheduler,
        simulation.state(),
    )
    return Batch(envelope, rows)


def replay(store: Store, inherited: list[TaskRange]) -> Simulation:
    """Simulate these tasks again; returns the state after them."""
    simulation = Simulation.new(inherited[0].record.spec)
    for task_range in inherited:
        simulation = map_to_devices(task_range.record.spec, simulation)
        for first, end in _chunks(store, task_range):
            chunk = TaskRange(task_range.record, task_range.scheduler, first, end)
            stored = _read_results(store, chunk)
            decisions = stored.select(SCHEMAS["decisions"].names)
            rows, simulation = simulation.advance(decisions)
            if not np.array_equal(column(rows, "finish"), column(stored, "finish")):
                raise Unreadable(
                    f"the results of {chunk.scheduler} in run {chunk.record.run} for the tasks "
                    f"{first} to {end - 1} cannot be reproduced from its decisions: they were made "
                    "by another version of the program"
                )
    return simulation


def map_to_devices(
    spec: RunSpec, simulation: Simulation, next_batch: int | None = None
) -> Simulation:
    """Map the simulation state to the devices of `spec`."""
    cluster, observation = simulation.cluster, simulation.observation
    standing, platform = simulation.standing, spec.platform
    if not same_devices(simulation.spec.platform, platform):
        mapping = DeviceMapping.between(simulation.spec.platform, platform)
        cluster = mapping.cluster(cluster)
        observation = observation and mapping.observation(observation)
        busy = mapping.busy(standing.busy)
        idle = idle_energy(busy, standing.makespan, platform)
        standing = standing.model_copy(update={"busy": busy, "idle_energy": idle})
    number = simulation.next_batch if next_batch is None else next_batch
    return Simulation(spec, cluster, standing, simulation.sketch, number, observation)


def _chunks(store: Store, task_range: TaskRange) -> Iterator[tuple[int, int]]:
    """Tasks of whole batches, since a scheduler may serve those of a batch in another order."""
    starts = _batch_starts(store, task_range)
    ends = [*starts[1:], task_range.end]
    begin = task_range.first
    for end, next_end in zip(ends, [*ends[1:], None], strict=True):
        if next_end is None or next_end - begin > CHUNK_TASKS:
            yield begin, end
            begin = end


def _batch_starts(store: Store, task_range: TaskRange, query: str = BATCH_STARTS) -> list[int]:
    values = {"run": task_range.record.run, "first": task_range.first, "end": task_range.end}
    return [int(row["first"]) for row in store.query(query, values)]


def _read_results(store: Store, task_range: TaskRange) -> pa.RecordBatch:
    """The stored rows in the form of a message; raises Unreadable unless all are stored."""
    values = {
        "run": task_range.record.run,
        "scheduler": task_range.scheduler,
        "first": task_range.first,
        "end": task_range.end,
    }
    table = store.table(ROWS, values)
    if table.num_rows != task_range.end - task_range.first:
        raise Unreadable(
            f"only {table.num_rows} results of {values['scheduler']} in run {values['run']} are "
            f"stored for the tasks {values['first']} to {task_range.end - 1}"
        )
    table = table.combine_chunks()
    schema = SCHEMAS["results"]
    arrays = [table.column(each.name).chunk(0).cast(each.type) for each in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
