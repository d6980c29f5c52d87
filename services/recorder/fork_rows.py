"""Copies the rows that a fork shares with its parent, so that every query of the fork finds them.

The copies are made inside ClickHouse, by one statement per table. Rows that are copied twice
replace each other. The simulator starts the fork when all of its results are copied.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.domain.cluster.device_mapping import DeviceMapping, same_devices
from shared.domain.hardware.platform import NOWHERE
from shared.domain.schedulers import ORACLE
from shared.messages.runs import Fork, RunRecord
from shared.store.client import Store
from shared.store.schema import TABLES

IS_COPIED = """
    SELECT count() AS schedulers FROM (
        SELECT scheduler FROM scheduler_results
        WHERE run = {run:String} AND task_id < {at:Int64}
        GROUP BY scheduler HAVING uniqExact(task_id) = {at:Int64}
    ) WHERE has({names:Array(String)}, scheduler)
"""


def copy_rows(store: Store, record: RunRecord, fork: Fork, parent: RunRecord) -> None:
    """The tasks, results and standings before the fork's first task."""
    if fork.at == 0 or _is_copied(store, record, fork):
        return
    run, schedulers = {"run": "{run:String}"}, record.spec.schedulers
    values = {"run": record.run, "parent": parent.run, "at": fork.at}
    if ORACLE in schedulers and ORACLE not in fork.takes_over:
        _copy(store, "training_data", run, "task_id < {at:Int64}", values)
    _copy(store, "tasks", run, "task_id < {at:Int64}", values)
    of_devices, busy = _mapped(record, parent)
    for name in schedulers:
        values |= {"name": name, "source": fork.takes_over.get(name, name)}
        named = {**run, "scheduler": "{name:String}"}
        of_source = "scheduler = {source:String}"
        # The standing after the last task comes with the fork's first message.
        batch = {"batch": fork.next_batch - 1}
        _copy(
            store,
            "standings",
            named | busy,
            f"{of_source} AND batch < {{batch:UInt64}}",
            values | batch,
        )
        _copy(
            store,
            "scheduler_results",
            named | of_devices,
            f"{of_source} AND task_id < {{at:Int64}}",
            values,
        )


def _is_copied(store: Store, record: RunRecord, fork: Fork) -> bool:
    names = list(record.spec.schedulers)
    (row,) = store.query(IS_COPIED, {"run": record.run, "at": fork.at, "names": names})
    return bool(row["schedulers"] == len(names))


def _copy(
    store: Store, table: str, changed: Mapping[str, str], where: str, values: Mapping[str, object]
) -> None:
    columns = [column.name for column in TABLES[table].columns]
    chosen = ", ".join(changed.get(name, name) for name in columns)
    store.command(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen} FROM {table} AS old FINAL "
        f"WHERE old.run = {{parent:String}} AND {where}",
        values,
    )


def _mapped(record: RunRecord, parent: RunRecord) -> tuple[dict[str, str], dict[str, str]]:
    """Expressions for the columns of results, and of standings, that count devices."""
    before, after = parent.spec.platform, record.spec.platform
    if same_devices(before, after):
        return {}, {}
    mapping = DeviceMapping.between(before, after)
    # ClickHouse counts from 1, and -1 (none) becomes the first entry.
    numbers = [NOWHERE, *mapping.number_after]
    of_devices = {name: f"{numbers}[{name} + 2]" for name in ("device", "cpu")}
    # Scores and predictions were made for the parent's devices.
    of_devices |= {"scores": "[]", "predicted": "[]"}
    meters = [meter + 1 for meter in mapping.meters]
    return of_devices, {"busy": f"arrayMap(m -> if(m = 0, 0., busy[m]), {meters})"}
