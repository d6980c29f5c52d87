"""What live feeds read besides results: run records, the task stream, lag, and the store."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from services.gateway.health.traffic import BusTraffic
from services.gateway.history.queries import events
from services.gateway.live.race import WINDOW_SECONDS, Race, ResultBatch, Sample
from services.gateway.runs.queries import busy_before, newest_standings
from services.gateway.tasks.queries import results_of_task
from shared.bus.client import Bus
from shared.bus.service import Service
from shared.bus.task_stream import load_position
from shared.errors import NotFound
from shared.messages.events import Event
from shared.messages.runs import RunRecord
from shared.messages.standing import Standing
from shared.runtime.logs import logger
from shared.store.client import Store, StoreError

TRAFFIC_SECONDS = 2.0

Rows = TypeVar("Rows")

log = logger()


class FeedSources:
    """Shared by all feeds."""

    def __init__(self, service: Service, store: Store) -> None:
        self._service = service
        self._store = store
        self.traffic = BusTraffic(service.bus, TRAFFIC_SECONDS)

    @property
    def bus(self) -> Bus:
        return self._service.bus

    async def record(self, run: str) -> RunRecord:
        for record in await self._service.runs.refresh():
            if record.run == run:
                return record
        raise NotFound(f"run {run} was deleted")

    async def tasks_sent(self, record: RunRecord, race: Race) -> int:
        if record.active:
            return (await load_position(self.bus, record.run, record.fork)).cursor.next_task
        return race.most_tasks

    async def stored_results(self, run: str, schedulers: Iterable[str]) -> list[ResultBatch]:
        """The newest standings in the store: the bus does not keep a finished run's results."""
        rows = await self._query(newest_standings, run, schedulers) or {}
        return [
            ResultBatch(name, row["batch"], Standing.model_validate(row))
            for name, row in rows.items()
        ]

    async def show_task(self, run: str, race: Race, task_id: int) -> bool:
        """Load one task's results; False unless the store has those of every scheduler."""
        rows = await self._query(results_of_task, run, race.names, task_id)
        if rows is None or len(rows) < len(race.names):
            return False
        race.show(rows)
        return True

    async def load_past(self, run: str, race: Race, notifications: deque[Event]) -> None:
        """What happened before this feed was opened, as far as the store has it."""
        moments = {
            name: (competitor.batch, competitor.standing.clock - WINDOW_SECONDS)
            for name, competitor in race.competitors.items()
        }
        busy = await self._query(busy_before, run, moments) or {}
        for name, row in busy.items():
            race.add_past(name, Sample(row["clock"], np.array(row["busy"])))
        most = notifications.maxlen
        past = await self._query(events, run, None, most, None, of_no_run=True) or []
        notifications.extend(Event.model_validate(event) for event in reversed(past))

    async def _query(
        self, query: Callable[..., Rows], run: str, *arguments: Any, **options: Any
    ) -> Rows | None:
        """None if the store does not answer: the feed works without it."""
        try:
            return await asyncio.to_thread(query, self._store, run, *arguments, **options)
        except StoreError as error:
            log.warning("the live feed cannot read the store", run=run, error=str(error))
            return None
