"""Forks: runs that share the beginning of another one, their parent.

Before a fork's first own task, the simulator publishes a message on `results.<run>.<scheduler>` for
every scheduler, with the scheduler's cluster as it was in the parent.
"""

from __future__ import annotations

from collections.abc import Iterable

from shared.bus.client import Bus
from shared.bus.run_book import RunBook
from shared.errors import NotFound
from shared.messages import subjects
from shared.messages.runs import RunRecord


async def schedulers_without_checkpoint(bus: Bus, record: RunRecord) -> list[str]:
    """The schedulers of a fork that cannot go on yet."""
    if record.fork is None or record.fork.at == 0:
        return []
    info = await bus.jetstream.stream_info(
        subjects.RESULTS, subjects_filter=subjects.results(record.run, "*")
    )
    stored = info.state.subjects or {}
    return [name for name in record.competing if subjects.results(record.run, name) not in stored]


async def parent_of(runs: RunBook, record: RunRecord) -> RunRecord | None:
    """The run that this one was forked from; None: it is no fork."""
    if record.fork is None:
        return None
    try:
        return await runs.local(record.fork.run)
    except NotFound:
        raise NotFound(
            f"run {record.run} was forked from run {record.fork.run}, which is deleted"
        ) from None


def needed_by_forks(records: Iterable[RunRecord]) -> set[str]:
    """The runs whose tasks an active fork shares: they must not be deleted."""
    by_run = {record.run: record for record in records}
    needed: set[str] = set()
    for record in by_run.values():
        ancestor = record.fork.run if record.active and record.fork else None
        while ancestor is not None:
            needed.add(ancestor)
            above = by_run.get(ancestor)
            ancestor = above.fork.run if above and above.fork else None
    return needed
