"""One run, followed on the bus and told to all who watch it.

Three things go on: results that pass are taken in, the arena around the run is looked at (its
state, its stream of tasks, who lags), and twice a second what has changed is sent. Only the first
two touch the bus or the store, so a slow store never holds up the beat.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

import nats.js.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from services.gateway.live.client import Client
from services.gateway.live.message import Message, fitted, note, notification, text_of
from services.gateway.live.race import Race, mean, read_lap, shown, shown_share
from services.gateway.live.surroundings import Surroundings
from services.gateway.ranking import Weights
from shared import subjects
from shared.bus import GO_ON_FROM, PASSING
from shared.cancelling import cancel
from shared.errors import ArenaError, NotFound, Unreadable
from shared.events import Event
from shared.logs import logger
from shared.runs import RunRecord

BEAT_SECONDS = 0.5
HEARTBEAT_SECONDS = 2.0
# Messages that were missed are made up for this often.
CATCH_UP_SECONDS = 5.0
RATE_BEATS = 10
KEPT_NOTES = 20

log = logger()


class Feed:
    def __init__(self, record: RunRecord, around: Surroundings) -> None:
        self.run = record.run
        self.clients: set[Client] = set()
        self.left_at = time.monotonic()  # when the last client went
        self.gone = asyncio.Event()  # the run was deleted
        self._record = record
        self._around = around
        self._race = Race(record.spec)
        self._sequence = 0
        self._tasks_sent = 0
        self._notes: deque[Event] = deque(maxlen=KEPT_NOTES)
        self._processed: deque[tuple[float, int]] = deque(maxlen=RATE_BEATS)
        self._news = False
        self._header: Message = {}
        self._sent_rows: dict[Weights, dict[str, Message]] = {}
        self._sent_use: dict[str, dict[str, float]] = {}
        self._sent_at = 0.0
        self._snapshots: dict[Weights, str] = {}
        self._subscription: Subscription | None = None
        self._work: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Listen first, then load what was before: nothing falls in between."""
        self._subscription = await self._around.bus.listen(
            subjects.results(self.run, "*"), self._on_results
        )
        await self._catch_up()
        await self._around.fill(self.run, self._race, self._notes)
        await self._look_around()
        self._processed.append((time.monotonic(), self._race.tasks_processed))
        self._header = self._head()
        self._work = [asyncio.create_task(self._watch()), asyncio.create_task(self._beat())]

    async def close(self) -> None:
        await cancel(*self._work)
        if self._subscription is not None and self._around.bus.connected:
            await self._subscription.unsubscribe()

    async def _on_results(self, message: Msg) -> None:
        try:
            self._news |= self._race.take(read_lap(message.data, message.subject))
        except Unreadable as error:  # the recorder puts it with the dead letters
            log.debug("results are skipped", subject=message.subject, error=str(error))

    async def _catch_up(self) -> None:
        """Take the last message of every scheduler that is not where the stream is."""
        behind = [
            name
            for name in self._record.spec.schedulers
            if name in self._race.missing
            or self._race.standing_of(name).tasks < max(self._tasks_sent, 1)
        ]
        gone = []
        for name in behind:
            subject = subjects.results(self.run, name)
            try:
                message = await self._around.bus.stream.get_last_msg(
                    subjects.RESULTS, subject, direct=True
                )
                if GO_ON_FROM in (message.headers or {}):  # an older batch that was replayed
                    gone.append(name)
                    continue
                self._news |= self._race.take(read_lap(message.data or b"", subject))
            except (nats.js.errors.NotFoundError, Unreadable):
                gone.append(name)
        if gone:
            for lap in await self._around.stored_laps(self.run, gone):
                self._news |= self._race.take(lap)

    async def _watch(self) -> None:
        caught_up = time.monotonic()
        while not self.gone.is_set():
            await asyncio.sleep(BEAT_SECONDS)
            try:
                await self._look_around()
                if time.monotonic() - caught_up > CATCH_UP_SECONDS:
                    await self._catch_up()
                    caught_up = time.monotonic()
            except NotFound:
                self.gone.set()
            except (*PASSING, ArenaError) as error:
                log.warning("live feed waits", run=self.run, error=repr(error))

    async def _look_around(self) -> None:
        self._record = await self._around.record(self.run)
        self._tasks_sent = await self._around.tasks_sent(self._record, self._race)
        await self._around.look()
        wanted = self._race.wanted_task()
        if wanted is not None:
            self._news |= await self._around.show_task(self.run, self._race, wanted)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            try:
                self._tell()
            except Exception as error:  # one bad figure must not end the feed
                log.warning("live update failed", run=self.run, error=repr(error), exc_info=True)

    def join(self, client: Client) -> None:
        self.clients.add(client)
        self._greet(client)

    def leave(self, client: Client) -> None:
        self.clients.discard(client)
        self.left_at = time.monotonic()

    def notify(self, event: Event) -> None:
        self._notes.append(event)
        self._snapshots.clear()
        text = notification(event)
        for client in self.clients:
            client.offer(text)

    def _tell(self) -> None:
        """Send what has changed since the last beat, or a sign of life."""
        self._snapshots.clear()
        self._processed.append((time.monotonic(), self._race.tasks_processed))
        header = self._head()
        if self._news or header != self._header:
            self._news, self._header = False, header
            self._send_update()
        elif time.monotonic() - self._sent_at >= HEARTBEAT_SECONDS:
            self._sent_at = time.monotonic()
            beat = {"type": "heartbeat", "at": time.time(), "run": self.run}
            text = text_of({**beat, "state": self._record.state})
            for client in self.clients:
                client.offer(text)
        for client in self.clients:
            if client.fresh:
                self._greet(client)

    def _send_update(self) -> None:
        self._sequence += 1
        self._sent_at = time.monotonic()
        used = self._race.utilization()
        changed = {name: seen for name, seen in used.items() if self._sent_use.get(name) != seen}
        self._sent_use = used
        update = self._update(used, changed)
        groups: dict[Weights, list[Client]] = {}
        for client in self.clients:
            if not client.fresh:
                groups.setdefault(client.weights, []).append(client)
        self._sent_rows = {key: rows for key, rows in self._sent_rows.items() if key in groups}
        for weights, clients in groups.items():
            text = fitted({**update, "comparison": self._changed_rows(weights)})
            for client in clients:
                client.offer(text)

    def _changed_rows(self, weights: Weights) -> list[Message]:
        rows = self._race.comparison(weights)
        before = self._sent_rows.get(weights, {})
        self._sent_rows[weights] = {row["name"]: row for row in rows}
        return [row for row in rows if before.get(row["name"]) != row]

    def _greet(self, client: Client) -> None:
        """Send everything there is; those who come in the same beat share it."""
        client.fresh = False
        if client.weights not in self._snapshots:
            used = self._race.utilization()
            rows = self._race.comparison(client.weights)
            self._sent_rows.setdefault(client.weights, {row["name"]: row for row in rows})
            self._sent_use = self._sent_use or used
            self._snapshots[client.weights] = fitted(
                {
                    **self._update(used, used),
                    "snapshot": True,
                    "comparison": rows,
                    "spec": self._record.spec.model_dump(mode="json"),
                    "notifications": [note(event) for event in reversed(self._notes)],
                }
            )
        client.offer(self._snapshots[client.weights])

    def _update(
        self, used: dict[str, dict[str, float]], shared: dict[str, dict[str, float]]
    ) -> Message:
        task, results = self._race.common_task() or (None, {})
        return {
            "type": "simulation_update",
            "snapshot": False,
            **self._header,
            "at": time.time(),
            "sequence": self._sequence,
            "task": task,
            "latest_results": results,
            "utilization": _utilization(used, shared, self._race.devices),
        }

    def _head(self) -> Message:
        return {
            "run": self.run,
            "state": self._record.state,
            "rate": self._rate(),
            # Looked up now and then, while results pour in.
            "tasks_sent": max(self._tasks_sent, self._race.most_tasks),
            "tasks_processed": self._race.tasks_processed,
            "lag": {reader: messages for reader, messages in self._around.lag.items() if messages},
            "rejected": self._around.rejected,
        }

    def _rate(self) -> float:
        """Tasks per second of wall time that all schedulers have done lately."""
        (start, before), (end, now) = self._processed[0], self._processed[-1]
        return shown((now - before) / (end - start)) if end > start else 0.0


def _utilization(
    used: dict[str, dict[str, float]], shared: dict[str, dict[str, float]], devices: list[str]
) -> Message:
    """The mean over all schedulers, and each of those that are to be told."""
    of_all = {
        device: {"utilization": shown_share(mean(seen[device] for seen in used.values()))}
        for device in devices
    }
    average: dict[str, Any] = {
        "average_utilization": shown_share(mean(seen["utilization"] for seen in of_all.values()))
    }
    schedulers = {
        name: {"average_utilization": shown_share(mean(seen.values())), "devices": seen}
        for name, seen in shared.items()
    }
    return {**average, **of_all, "schedulers": schedulers}
