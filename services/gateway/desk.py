"""What every route works with: the arena's parts, and the questions that several routes ask."""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import HTTPException, Path, Query, Request

from services.gateway.bounds import Bounds
from services.gateway.control import Control
from services.gateway.origins import Origins
from services.gateway.queries import Queries
from services.gateway.recent import Recent
from services.gateway.shapes import Run, RunDetail, SchedulerStanding
from services.gateway.windows import Windows
from shared.deadletters import LetterBox
from shared.errors import NotFound
from shared.replays import Replays
from shared.runs import RunRecord
from shared.service import Service
from shared.store.client import Store
from shared.stream import load_position

RunId = Annotated[
    str | None, Query(description="a run's id; none: the newest active run", max_length=64)
]
RunPath = Annotated[str, Path(description="a run's id", examples=["1116-081502-6a1f"])]


@dataclass(frozen=True, slots=True)
class Advance:
    """How many tasks a run was sent, and how far each scheduler has come."""

    sent: int
    schedulers: dict[str, SchedulerStanding]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Messages that each reader has still to deal with; dead letters by service."""

    lag: dict[str, int] = field(default_factory=dict)
    letters: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Desk:
    service: Service
    control: Control
    store: Store
    queries: Queries
    windows: Windows
    bounds: Bounds
    origins: Origins
    letters: LetterBox
    recent: Recent = field(default_factory=Recent)

    @property
    def replays(self) -> Replays:
        return Replays(self.service.bus, self.service.runs, self.letters)

    def allow(self, request: Request) -> None:
        """Calls that change something need the token, when one is set, and no foreign page."""
        if not self.origins.allow(request.headers):
            raise HTTPException(403, "pages of another host may not do that")
        token = self.service.settings.gateway_token.get_secret_value()
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token and not hmac.compare_digest(given.encode(), token.encode()):
            raise HTTPException(
                401,
                "Authorization: Bearer <token> is missing or wrong",
                {"WWW-Authenticate": "Bearer"},
            )

    async def detail(self, record: RunRecord) -> RunDetail:
        advance = await self.advance(record)
        bound = await asyncio.to_thread(self.bounds.of, record)
        return RunDetail(
            **brief(record).model_dump(),
            tasks=advance.sent,
            bound=bound,
            schedulers=advance.schedulers,
        )

    async def advance(self, record: RunRecord) -> Advance:
        standings = await asyncio.to_thread(
            self.queries.standings, record.run, record.spec.schedulers
        )
        sent = max((standing.results for standing in standings.values()), default=0)
        if record.active:
            sent = (await load_position(self.service.bus, record.run)).cursor.next_task
        return Advance(sent, standings)

    async def traffic(self) -> Traffic:
        """Polled by many: asked of the bus once a second at most."""

        async def look() -> Traffic:
            return Traffic(await self.control.lag(), await self.control.dead_letters())

        return await self.recent.get("traffic", look)

    async def newest(self, run: str | None) -> RunRecord | None:
        """The run that is meant; None when none was named and there is none yet."""
        try:
            return await self.control.find(run)
        except NotFound:
            if run is not None:
                raise
            return None

    async def competitor(self, record: RunRecord, scheduler: str) -> str:
        if scheduler not in record.spec.schedulers:
            competing = ", ".join(record.spec.schedulers)
            raise NotFound(f"{scheduler} does not take part in run {record.run}: {competing} do")
        return scheduler


def brief(record: RunRecord) -> Run:
    return Run(
        run=record.run,
        name=record.spec.name,
        state=record.state,
        created_at=record.created_at,
        updated_at=record.updated_at,
        spec=record.spec.model_dump(mode="json"),
    )
