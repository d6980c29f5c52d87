"""The simulator service: a lane per scheduler; several simulators share the lanes out.

Which simulator has a lane is a matter of speed only. Should two have the same one for a moment,
the compare-and-set on `results.<run>.<scheduler>` lets just one of them advance it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from faststream import AckPolicy
from faststream.nats.annotations import NatsMessage

from services.simulator.lane import Lane, Metrics
from services.simulator.sharing import owner
from shared import batches, subjects
from shared.bus import ONE_AT_A_TIME, existing
from shared.service import Service
from shared.settings import Settings

# How often a simulator looks who else is there; a dead one's lanes are taken over after this.
SHARE_INTERVAL = 2.0


class Lanes:
    """The lanes that this simulator serves, started and stopped as runs and simulators come."""

    def __init__(self, service: Service, metrics: Metrics) -> None:
        self._service = service
        self._metrics = metrics
        self._lanes: dict[str, tuple[Lane, Any]] = {}

    async def share_out(self) -> None:
        while True:
            records = await self._service.runs.refresh()
            # Finished runs count too: what they left on the bus is still simulated.
            wanted = {name for record in records for name in record.spec.schedulers}
            if wanted:
                await self._serve(wanted)
            await self._wait_for_news(wanted)

    async def _wait_for_news(self, known: set[str]) -> None:
        """Until it is time to look again, or a run brings a scheduler that nobody serves yet."""
        for _ in range(10):
            await asyncio.sleep(SHARE_INTERVAL / 10)
            for record in await self._service.runs.refresh():
                if not known.issuperset(record.spec.schedulers):
                    return

    async def _serve(self, wanted: set[str]) -> None:
        reports = await self._service.bus.roll_call()
        instances = [report.instance for report in reports if report.service == "simulator"]
        me = self._service.instance
        mine = {name for name in wanted if owner(name, [*instances, me]) == me}
        for name in self._lanes.keys() - mine:
            await self._close(name)
        for name in mine - self._lanes.keys():
            await self._open(name)

    async def _open(self, scheduler: str) -> None:
        service, settings = self._service, self._service.settings
        lane = Lane(scheduler, service.bus, service.runs, self._metrics)
        # More may be pending than a lane keeps: early batches that were given back count too.
        durable = subjects.durable(
            subjects.simulator_durable(scheduler),
            subjects.decisions("*", scheduler),
            settings,
            pending=10_000,
        )
        await service.bus.make_durable(subjects.DECISIONS, durable)
        subscriber = service.bus.broker.subscriber(
            subjects.decisions("*", scheduler),
            stream=existing(subjects.DECISIONS),
            durable=durable.durable_name,
            config=durable,
            pull_sub=ONE_AT_A_TIME,
            inbox_prefix=service.bus.inbox_prefix,
            ack_policy=AckPolicy.MANUAL,
            persistent=False,
        )

        async def on_decisions(body: bytes, message: NatsMessage) -> None:
            await lane.offer(batches.decode(body, message.raw_message.subject), message)

        subscriber(on_decisions)
        await subscriber.start()
        self._lanes[scheduler] = (lane, subscriber)

    async def _close(self, scheduler: str) -> None:
        lane, subscriber = self._lanes.pop(scheduler)
        await subscriber.stop()
        await lane.close()

    async def close(self) -> None:
        for scheduler in list(self._lanes):
            await self._close(scheduler)


def make(settings: Settings) -> Service:
    service = Service("simulator", settings)
    lanes = Lanes(service, Metrics.register(service.registry))
    service.background.append(lanes.share_out)
    service.closing.append(lanes.close)
    return service


def main() -> None:
    make(Settings()).run()
