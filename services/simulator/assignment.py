"""Which simulator consumes which scheduler's decisions.

The assignment affects speed only. While two simulators consume the same scheduler's decisions, the
compare-and-set on `results.<run>.<scheduler>` lets just one of them publish each batch of results.
"""

from __future__ import annotations

import time
from hashlib import blake2b
from typing import Any

from faststream import AckPolicy

from services.simulator.partition import Metrics, Partition
from shared.bus import streams
from shared.bus.client import Message
from shared.bus.run_changes import RunChanges
from shared.bus.service import Service
from shared.messages import batches, subjects

# How often the simulators are counted; the partitions of a dead one move after this.
REBALANCE_SECONDS = 2.0


def owner(scheduler: str, instances: list[str]) -> str:
    """Rendezvous hashing: every simulator computes the same owner, and when one joins or leaves
    only the schedulers that it gains or loses move."""
    return max(instances, key=lambda instance: blake2b(f"{instance}/{scheduler}".encode()).digest())


class Assignment:
    """The partitions of this simulator, opened and closed as runs and simulators come and go."""

    def __init__(self, service: Service, metrics: Metrics) -> None:
        self._service = service
        self._metrics = metrics
        self._changes = RunChanges(service.bus)
        self._partitions: dict[str, tuple[Partition, Any]] = {}

    def owned(self) -> set[str]:
        """The schedulers that this simulator serves now."""
        return set(self._partitions)

    async def rebalance(self) -> None:
        await self._changes.listen()
        while True:
            records = await self._service.runs.refresh()
            # Finished runs too: their last decisions may still be on the bus.
            schedulers = {name for record in records for name in record.spec.schedulers}
            if schedulers:
                await self._assign(schedulers)
            await self._wait_for_new_scheduler(schedulers)

    async def _wait_for_new_scheduler(self, known: set[str]) -> None:
        """Wait until the next rebalance is due or a run names a new scheduler."""
        due_at = time.monotonic() + REBALANCE_SECONDS
        while (remaining := due_at - time.monotonic()) > 0:
            if await self._changes.wait(remaining):
                for record in await self._service.runs.refresh():
                    if not known.issuperset(record.spec.schedulers):
                        return

    async def _assign(self, schedulers: set[str]) -> None:
        reports = await self._service.bus.roll_call()
        instances = [report.instance for report in reports if report.service == "simulator"]
        me = self._service.instance
        mine = {name for name in schedulers if owner(name, [*instances, me]) == me}
        for name in self._partitions.keys() - mine:
            await self._close(name)
        for name in mine - self._partitions.keys():
            await self._open(name)

    async def _open(self, scheduler: str) -> None:
        service, settings = self._service, self._service.settings
        partition = Partition(scheduler, service.bus, service.runs, self._metrics)
        # Larger than a partition's buffer: batches that were nacked with a delay are pending too.
        consumer = streams.durable(
            subjects.simulator_durable(scheduler),
            subjects.decisions("*", scheduler),
            settings,
            pending=10_000,
        )
        await service.bus.ensure_consumer(subjects.DECISIONS, consumer)
        subscriber = service.bus.subscriber(
            subjects.DECISIONS, consumer, ack_policy=AckPolicy.MANUAL, persistent=False
        )

        async def on_decisions(message: Message) -> None:
            subject = message.raw_message.subject
            await partition.process(batches.decode(message.body, subject), message)

        subscriber(on_decisions)
        await subscriber.start()
        self._partitions[scheduler] = (partition, subscriber)

    async def _close(self, scheduler: str) -> None:
        partition, subscriber = self._partitions.pop(scheduler)
        await subscriber.stop()
        await partition.close()

    async def close(self) -> None:
        for scheduler in list(self._partitions):
            await self._close(scheduler)
