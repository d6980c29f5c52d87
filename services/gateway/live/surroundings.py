"""What a feed needs to know beyond its results: asked once for all feeds, from bus and store."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any

from services.gateway.control import Control
from services.gateway.live.race import WINDOW_SECONDS, Lap, Race, Sample
from services.gateway.queries import Queries
from services.gateway.recent import Recent
from shared.bus import Bus
from shared.errors import NotFound
from shared.events import Event
from shared.logs import logger
from shared.runs import RunBook, RunRecord
from shared.service import Service
from shared.standing import Standing
from shared.store.client import StoreError
from shared.stream import load_position

LOOK_SECONDS = 2.0

log = logger()


class Surroundings:
    def __init__(self, service: Service, control: Control, queries: Queries) -> None:
        self._service = service
        self._control = control
        self._queries = queries
        self._recent = Recent(seconds=LOOK_SECONDS)
        self.lag: dict[str, int] = {}
        self.rejected = 0

    @property
    def bus(self) -> Bus:
        return self._service.bus

    @property
    def _runs(self) -> RunBook:
        return self._service.runs

    async def record(self, run: str) -> RunRecord:
        for record in await self._runs.refresh():
            if record.run == run:
                return record
        raise NotFound(f"run {run} is no more")

    async def tasks_sent(self, record: RunRecord, race: Race) -> int:
        if record.active:
            return (await load_position(self.bus, record.run)).cursor.next_task
        return race.most_tasks

    async def look(self) -> None:
        """Who lags, and the dead letters: of the whole arena, so one look serves all feeds."""

        async def ask() -> tuple[dict[str, int], int]:
            letters = await self._control.dead_letters()
            return await self._control.lag(), sum(letters.values())

        self.lag, self.rejected = await self._recent.get("lag", ask)

    async def stored_laps(self, run: str, schedulers: Iterable[str]) -> list[Lap]:
        """The newest standings that the store has; the bus forgets a finished run."""
        try:
            rows = await asyncio.to_thread(self._queries.newest_standings, run, schedulers)
        except StoreError as error:
            log.warning("no standings", run=run, error=str(error))
            return []
        return [Lap(name, row["batch"], Standing.model_validate(row)) for name, row in rows.items()]

    async def show_task(self, run: str, race: Race, task_id: int) -> bool:
        """Look up results of a task that some scheduler had long ago; says if all were there."""
        try:
            found = await asyncio.to_thread(self._queries.results_of_task, run, race.names, task_id)
        except StoreError as error:
            log.warning("no results", run=run, error=str(error))
            return False
        complete = len(found) == len(race.names)
        if complete:
            race.show(found)
        return complete

    async def fill(self, run: str, race: Race, notes: deque[Event]) -> None:
        """What a feed that was opened in mid-run has missed, as far as the store knows it."""
        places = {
            name: (race.batch_of(name), race.standing_of(name).clock - WINDOW_SECONDS)
            for name in race.names
        }
        try:
            for name, row in (await self._busy_before(run, places)).items():
                race.remember(name, Sample(row["clock"], (*row["cpu_busy"], *row["gpu_busy"])))
            told = await asyncio.to_thread(
                self._queries.events, run, None, notes.maxlen or 0, None, arena_too=True
            )
        except StoreError as error:
            log.warning("the feed starts without its past", run=run, error=str(error))
            return
        for event in reversed(told):
            notes.append(Event.model_validate(event))

    async def _busy_before(
        self, run: str, places: dict[str, tuple[int, float]]
    ) -> dict[str, dict[str, Any]]:
        return await asyncio.to_thread(self._queries.busy_before, run, places)
