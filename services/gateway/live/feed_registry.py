"""All live feeds: one for each run that has clients, closed a while after the last one left."""

from __future__ import annotations

import asyncio
import time

from nats.aio.msg import Msg
from prometheus_client import CollectorRegistry, Counter, Gauge
from pydantic import ValidationError

from services.gateway.live.client import Client
from services.gateway.live.run_feed import RunFeed
from services.gateway.live.sources import FeedSources
from shared.errors import Unavailable
from shared.messages import subjects
from shared.messages.events import Event
from shared.messages.runs import RunRecord
from shared.runtime.cancellation import cancel

# A page that is reloaded finds its feed still open.
LINGER_SECONDS = 30.0
SWEEP_SECONDS = 1.0
MOST_CLIENTS = 2000


class FeedRegistry:
    def __init__(self, sources: FeedSources, registry: CollectorRegistry) -> None:
        self._sources = sources
        self._feeds: dict[str, RunFeed] = {}
        self._opening: dict[str, asyncio.Task[RunFeed]] = {}
        self._clients = 0
        gauge = Gauge("hybrid_live_clients", "WebSocket clients", registry=registry)
        gauge.set_function(lambda: self._clients)
        self.dropped = Counter(
            "hybrid_live_clients_dropped_total",
            "Clients disconnected because they read too slowly",
            registry=registry,
        )

    async def join(self, record: RunRecord, client: Client) -> RunFeed:
        if self._clients >= MOST_CLIENTS:
            raise Unavailable(f"{MOST_CLIENTS} clients are connected already; try again later")
        self._clients += 1
        try:
            feed = self._feeds.get(record.run) or await self._open(record)
        except BaseException:
            self._clients -= 1
            raise
        feed.join(client)
        return feed

    def leave(self, feed: RunFeed, client: Client) -> None:
        feed.leave(client)
        self._clients -= 1

    async def _open(self, record: RunRecord) -> RunFeed:
        """Clients that join while the feed is being opened wait for the same feed."""
        opening = self._opening.get(record.run)
        if opening is None:
            opening = asyncio.create_task(self._make(record))
            self._opening[record.run] = opening
            opening.add_done_callback(lambda _: self._opening.pop(record.run, None))
        return await asyncio.shield(opening)

    async def _make(self, record: RunRecord) -> RunFeed:
        feed = RunFeed(record, self._sources)
        try:
            await feed.open()
        except BaseException:
            await feed.close()
            raise
        self._feeds[record.run] = feed
        return feed

    async def run(self) -> None:
        """Forward events to the feeds and close idle feeds, until cancelled."""
        events = await self._sources.bus.listen(subjects.event("*"), self._on_event)
        try:
            while True:
                await asyncio.sleep(SWEEP_SECONDS)
                for feed in list(self._feeds.values()):
                    idle = not feed.clients and time.monotonic() - feed.idle_since > LINGER_SECONDS
                    if idle or feed.deleted.is_set():
                        del self._feeds[feed.run]
                        await feed.close()
        finally:
            if self._sources.bus.connected:
                await events.unsubscribe()

    async def _on_event(self, message: Msg) -> None:
        try:
            event = Event.model_validate_json(message.data)
        except ValidationError:  # the recorder makes it a dead letter
            return
        for feed in self._feeds.values():
            if event.run in ("", feed.run):
                feed.notify(event)

    async def close(self) -> None:
        await cancel(*self._opening.values())
        for feed in list(self._feeds.values()):
            await feed.close()
        self._feeds.clear()
