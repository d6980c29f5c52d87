"""All feeds: one for each run that somebody watches, closed a while after the last one left."""

from __future__ import annotations

import asyncio
import time

from nats.aio.msg import Msg
from prometheus_client import CollectorRegistry, Counter, Gauge
from pydantic import ValidationError

from services.gateway.live.client import Client
from services.gateway.live.feed import Feed
from services.gateway.live.surroundings import Surroundings
from shared.cancelling import cancel
from shared.errors import Unavailable
from shared.events import Event
from shared.runs import RunRecord

# A page that is loaded again finds its feed still warm.
LINGER_SECONDS = 30.0
SWEEP_SECONDS = 1.0
MOST_CLIENTS = 2000


class Feeds:
    def __init__(self, around: Surroundings, registry: CollectorRegistry) -> None:
        self._around = around
        self._feeds: dict[str, Feed] = {}
        self._opening: dict[str, asyncio.Task[Feed]] = {}
        self._clients = 0
        self._watching = Gauge("hybrid_live_clients", "WebSocket clients", registry=registry)
        self.dropped = Counter(
            "hybrid_live_clients_dropped_total", "Clients that did not read", registry=registry
        )

    async def join(self, record: RunRecord, client: Client) -> Feed:
        if self._clients >= MOST_CLIENTS:
            raise Unavailable(f"{MOST_CLIENTS} clients are watching already")
        self._clients += 1
        self._watching.set(self._clients)
        try:
            feed = self._feeds.get(record.run) or await self._open(record)
        except BaseException:
            self._count_out()
            raise
        feed.join(client)
        return feed

    def leave(self, feed: Feed, client: Client) -> None:
        feed.leave(client)
        self._count_out()

    def _count_out(self) -> None:
        self._clients -= 1
        self._watching.set(self._clients)

    async def _open(self, record: RunRecord) -> Feed:
        """Those who come while it is being opened wait for the same feed."""
        opening = self._opening.get(record.run)
        if opening is None:
            opening = asyncio.create_task(self._make(record))
            self._opening[record.run] = opening
            opening.add_done_callback(lambda _: self._opening.pop(record.run, None))
        return await asyncio.shield(opening)

    async def _make(self, record: RunRecord) -> Feed:
        feed = Feed(record, self._around)
        try:
            await feed.open()
        except BaseException:
            await feed.close()
            raise
        self._feeds[record.run] = feed
        return feed

    async def run(self) -> None:
        """Pass events on and close what nobody watches, until cancelled."""
        events = await self._around.bus.listen("events.*", self._on_event)
        try:
            while True:
                await asyncio.sleep(SWEEP_SECONDS)
                for feed in list(self._feeds.values()):
                    idle = not feed.clients and time.monotonic() - feed.left_at > LINGER_SECONDS
                    if idle or feed.gone.is_set():
                        del self._feeds[feed.run]
                        await feed.close()
        finally:
            if self._around.bus.connected:
                await events.unsubscribe()

    async def _on_event(self, message: Msg) -> None:
        try:
            event = Event.model_validate_json(message.data)
        except ValidationError:  # the recorder puts it with the dead letters
            return
        for feed in self._feeds.values():
            if event.run in ("", feed.run):
                feed.notify(event)

    async def close(self) -> None:
        await cancel(*self._opening.values())
        for feed in list(self._feeds.values()):
            await feed.close()
        self._feeds.clear()
