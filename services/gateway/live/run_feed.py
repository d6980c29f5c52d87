"""The live feed of one run: follows it on the bus and sends what changes to all its clients.

Three things run concurrently: results are taken in as they arrive; the run's record, its task
stream and the lag are polled; twice a second the changes are sent. Only the first two use the bus
or the store, so a slow store never delays an update.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

import nats.js.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from services.gateway.analysis.ranking import Weights
from services.gateway.health.traffic import Traffic
from services.gateway.live.client import Client
from services.gateway.live.pending_events import PendingEvents
from services.gateway.live.race import Race, read_results
from services.gateway.live.schemas import (
    ComparisonRow,
    Heartbeat,
    RunHeader,
    Snapshot,
    Update,
)
from services.gateway.live.size_limit import fit, notification, summary
from services.gateway.live.sources import FeedSources
from services.gateway.live.utilization import ByMeter, UtilizationAverages
from services.gateway.runs.detail import pretraining
from services.gateway.runs.schemas import DeviceType, Meter, suspended_schedulers
from shared.bus.client import RESUME_FROM
from shared.bus.publisher import TRANSIENT_ERRORS
from shared.errors import ArenaError, NotFound, Unreadable
from shared.messages import subjects
from shared.messages.events import Event
from shared.messages.runs import RunRecord
from shared.runtime.cancellation import cancel
from shared.runtime.logs import logger

UPDATE_SECONDS = 0.5
HEARTBEAT_SECONDS = 2.0
# How often missed messages are looked for.
CATCH_UP_SECONDS = 5.0
RATE_UPDATES = 10
KEPT_NOTIFICATIONS = 20
SUSPENDED_CHARACTERS = 4000  # of the reasons of all suspended schedulers together
MOST_NOTIFICATIONS = 4  # with each update

log = logger()


class RunFeed:
    def __init__(self, record: RunRecord, sources: FeedSources) -> None:
        self.run = record.run
        self.clients: set[Client] = set()
        self.idle_since = time.monotonic()  # when the last client left
        self.deleted = asyncio.Event()  # the run was deleted
        self._record = record
        self._sources = sources
        self._race = Race(record.spec)
        self._race.suspended = frozenset(record.suspended)
        self._pretraining: list[str] = []
        self._averages = UtilizationAverages(self._race.meters)
        self._traffic = Traffic()
        self._sequence = 0
        self._tasks_sent = 0
        self._notifications: deque[Event] = deque(maxlen=KEPT_NOTIFICATIONS)
        self._pending_events = PendingEvents()
        self._processed: deque[tuple[float, int]] = deque(maxlen=RATE_UPDATES)
        self._changed = False
        self._header: RunHeader | None = None
        self._sent_rows: dict[Weights, dict[str, ComparisonRow]] = {}
        self._sent_utilization: ByMeter = {}
        self._sent_at = 0.0
        self._snapshots: dict[Weights, str] = {}
        self._subscription: Subscription | None = None
        self._background: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Subscribe first, then load the past, so that nothing is missed in between."""
        self._subscription = await self._sources.bus.listen(
            subjects.results(self.run, "*"), self._on_results
        )
        await self._catch_up()
        await self._sources.load_past(self.run, self._race, self._notifications)
        await self._poll()
        self._processed.append((time.monotonic(), self._race.tasks_processed))
        self._header = self._make_header()
        self._background = [
            asyncio.create_task(self._keep_polling()),
            asyncio.create_task(self._keep_sending()),
        ]

    async def close(self) -> None:
        await cancel(*self._background)
        if self._subscription is not None and self._sources.bus.connected:
            await self._subscription.unsubscribe()

    async def _on_results(self, message: Msg) -> None:
        try:
            self._changed |= self._race.take(read_results(message.data, message.subject))
        except Unreadable as error:  # the recorder makes it a dead letter
            log.debug("results are skipped", subject=message.subject, error=str(error))

    async def _catch_up(self) -> None:
        """Read the last message of every scheduler that is behind the task stream."""
        behind = [
            name
            for name in self._record.competing
            if name in self._race.missing
            or self._race.competitors[name].standing.tasks < max(self._tasks_sent, 1)
        ]
        not_on_bus = []
        for name in behind:
            subject = subjects.results(self.run, name)
            try:
                message = await self._sources.bus.jetstream.get_last_msg(
                    subjects.RESULTS, subject, direct=True
                )
                if RESUME_FROM in (message.headers or {}):  # an older batch that was replayed
                    not_on_bus.append(name)
                    continue
                self._changed |= self._race.take(read_results(message.data or b"", subject))
            except (nats.js.errors.NotFoundError, Unreadable):
                not_on_bus.append(name)
        if not_on_bus:
            for batch in await self._sources.stored_results(self.run, not_on_bus):
                self._changed |= self._race.take(batch)

    async def _keep_polling(self) -> None:
        caught_up = time.monotonic()
        while not self.deleted.is_set():
            await asyncio.sleep(UPDATE_SECONDS)
            try:
                await self._poll()
                if time.monotonic() - caught_up > CATCH_UP_SECONDS:
                    await self._catch_up()
                    caught_up = time.monotonic()
            except NotFound:
                self.deleted.set()
            except (*TRANSIENT_ERRORS, ArenaError) as error:
                log.warning("live feed cannot be updated", run=self.run, error=repr(error))

    async def _poll(self) -> None:
        self._record = await self._sources.record(self.run)
        self._race.suspended = frozenset(self._record.suspended)
        self._tasks_sent = await self._sources.tasks_sent(self._record, self._race)
        self._pretraining = await pretraining(self._sources.bus, self._record, self._tasks_sent)
        self._traffic = await self._sources.traffic.read()
        task = self._race.task_to_load()
        if task is not None:
            self._changed |= await self._sources.show_task(self.run, self._race, task)

    async def _keep_sending(self) -> None:
        while True:
            await asyncio.sleep(UPDATE_SECONDS)
            try:
                self._send_changes()
            except Exception as error:  # one bad figure must not end the feed
                log.warning("live update failed", run=self.run, error=repr(error), exc_info=True)

    def join(self, client: Client) -> None:
        self.clients.add(client)
        self._send_snapshot(client)

    def leave(self, client: Client) -> None:
        self.clients.discard(client)
        self.idle_since = time.monotonic()

    def notify(self, event: Event) -> None:
        """Send it with the next update, so that many events cannot flood the clients."""
        self._pending_events.add(event)

    def _send_notifications(self) -> None:
        for event, count in self._pending_events.take(MOST_NOTIFICATIONS):
            # Only the newest of a group is kept, so that repeated events do not remove others.
            others = [each for each in self._notifications if each.group != event.group]
            self._notifications = deque([*others, event], maxlen=KEPT_NOTIFICATIONS)
            self._offer(notification(event, count), self.clients)

    def _send_changes(self) -> None:
        """An update with what has changed, or a heartbeat."""
        self._snapshots.clear()
        self._send_notifications()
        self._processed.append((time.monotonic(), self._race.tasks_processed))
        header = self._make_header()
        if self._changed or header != self._header:
            self._changed, self._header = False, header
            self._send_update(header)
        elif time.monotonic() - self._sent_at >= HEARTBEAT_SECONDS:
            self._sent_at = time.monotonic()
            heartbeat = Heartbeat(at=time.time(), run=self.run, state=self._record.state)
            self._offer(heartbeat.model_dump_json(), self.clients)
        for client in self.clients:
            if client.needs_snapshot:
                self._send_snapshot(client)

    def _send_update(self, header: RunHeader) -> None:
        self._sequence += 1
        self._sent_at = time.monotonic()
        now = self._race.utilization()
        changed = {
            name: each for name, each in now.items() if self._sent_utilization.get(name) != each
        }
        self._sent_utilization = now
        groups: dict[Weights, list[Client]] = {}
        for client in self.clients:
            if not client.needs_snapshot:
                groups.setdefault(client.weights, []).append(client)
        self._sent_rows = {key: rows for key, rows in self._sent_rows.items() if key in groups}
        common = self._common_fields(header, now, changed)
        for weights, clients in groups.items():
            rows = self._race.comparison(weights)
            before = self._sent_rows.get(weights, {})
            self._sent_rows[weights] = {row.name: row for row in rows}
            new = [row for row in rows if before.get(row.name) != row]
            self._offer(fit(Update(**common, comparison=new)), clients)

    def _send_snapshot(self, client: Client) -> None:
        """Clients with the same weights share a snapshot until the next update."""
        client.needs_snapshot = False
        if client.weights not in self._snapshots:
            now = self._race.utilization()
            rows = self._race.comparison(client.weights)
            self._sent_rows.setdefault(client.weights, {row.name: row for row in rows})
            self._sent_utilization = self._sent_utilization or now
            snapshot = Snapshot(
                **self._common_fields(self._header or self._make_header(), now, now),
                comparison=rows,
                spec=self._record.spec,
                meters=[Meter.model_validate(meter) for meter in self._race.meters],
                types=[
                    DeviceType.model_validate(each) for each in self._record.spec.platform.types
                ],
                notifications=[summary(event) for event in reversed(self._notifications)],
            )
            self._snapshots[client.weights] = fit(snapshot)
        client.offer(self._snapshots[client.weights])

    def _common_fields(self, header: RunHeader, now: ByMeter, changed: ByMeter) -> dict[str, Any]:
        """The fields of a message except the comparison, which depends on the client's weights."""
        task, results = self._race.common_task() or (None, {})
        return {
            **dict(header),
            "at": time.time(),
            "sequence": self._sequence,
            "task": task,
            "latest_results": results,
            "utilization": self._averages.of(now, changed),
        }

    def _make_header(self) -> RunHeader:
        lag = self._traffic.lag
        return RunHeader(
            run=self.run,
            state=self._record.state,
            rate=self._rate(),
            # Results may be ahead of the polled position of the task stream.
            tasks_sent=max(self._tasks_sent, self._race.most_tasks),
            tasks_processed=self._race.tasks_processed,
            lag={consumer: messages for consumer, messages in lag.items() if messages},
            rejected=sum(self._traffic.dead_letters.values()),
            suspended=suspended_schedulers(self._record, SUSPENDED_CHARACTERS),
            pretraining=self._pretraining,
            learners=len(self._record.learning_schedulers),
        )

    def _rate(self) -> float:
        """Tasks per second of wall time that all schedulers have processed lately."""
        (start, before), (end, now) = self._processed[0], self._processed[-1]
        return (now - before) / (end - start) if end > start else 0.0

    @staticmethod
    def _offer(text: str, clients: Iterable[Client]) -> None:
        for client in clients:
            client.offer(text)
