"""One executor at a time is active, since two that share a machine would disturb each other.

The active one renews the lease. The lease is free when a waiting executor has seen no renewal for
`LEASE_SECONDS`, by its own clock. Taking and renewing it are compare-and-set. Results stay correct
even if two executors both believe that they are active: the compare-and-set on results lets only
one of them publish a batch.
"""

from __future__ import annotations

import asyncio
import time

from nats.js.errors import NotFoundError

from shared.bus.client import Bus
from shared.errors import Conflict
from shared.messages import subjects
from shared.messages.execution import LeaseHolder
from shared.runtime.cancellation import cancel
from shared.runtime.logs import logger

LEASE_SECONDS = 6.0
RENEW_SECONDS = 2.0

log = logger()


class Lease:
    def __init__(self, bus: Bus, instance: str) -> None:
        self._bus = bus
        self._instance = instance
        self._sequence = 0  # of the last message on the lease
        self._changed_at = 0.0
        self._renewed = 0
        self._renewing: asyncio.Task[None] | None = None
        self.lost = asyncio.Event()

    @property
    def held(self) -> bool:
        return self._renewing is not None and not self._renewing.done()

    async def take(self) -> bool:
        """Take the lease if it is free. Returns whether this executor is the active one now."""
        if self.held:
            return True
        sequence, holder = await self._read()
        if sequence != self._sequence:
            self._sequence, self._changed_at = sequence, time.monotonic()
        expired = time.monotonic() - self._changed_at > LEASE_SECONDS
        if holder.instance not in ("", self._instance) and not expired:
            return False
        try:
            await self._write(self._instance)
        except Conflict:
            return False
        log.info("this executor is active", instance=self._instance, before=holder.instance)
        self.lost.clear()
        self._renewing = asyncio.create_task(self._renew())
        return True

    async def release(self) -> None:
        """Give the lease up, so that another executor can take it at once."""
        if self._renewing is None:
            return
        held = self.held
        await cancel(self._renewing)
        self._renewing = None
        if held:
            try:
                await self._write("")
            except Conflict:
                log.info("the lease was taken by another executor")

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                await self._write(self._instance)
            except Conflict:
                log.warning("another executor is active", instance=self._instance)
                self.lost.set()
                return

    async def _read(self) -> tuple[int, LeaseHolder]:
        try:
            message = await self._bus.jetstream.get_last_msg(
                subjects.EXECUTION, subjects.EXECUTION_LEASE
            )
        except NotFoundError:
            return 0, LeaseHolder()
        return message.seq or 0, LeaseHolder.model_validate_json(message.data or b"")

    async def _write(self, instance: str) -> None:
        self._renewed += 1
        holder = LeaseHolder(instance=instance, renewed=self._renewed)
        self._sequence = await self._bus.publish(
            subjects.EXECUTION_LEASE,
            holder.model_dump_json().encode(),
            stream=subjects.EXECUTION,
            message_id=f"lease.{self._instance}.{self._renewed}",
            after=self._sequence,
        )
