"""Clients that NATS has just refused, usually services with a wrong password.

Such a service is on no roll call and can publish nothing; NATS reports it to its system account.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import nats
import nats.errors
from nats.aio.msg import Msg

from services.gateway.health.schemas import RefusedClient
from shared.bus.security import tls_context
from shared.messages import subjects
from shared.runtime.bounded_dict import BoundedDict
from shared.runtime.logs import logger
from shared.runtime.settings import Settings

# A service tries again every one or two seconds.
LISTED_SECONDS = 15.0
MAX_CLIENTS = 100
RECONNECT_SECONDS = 2.0
# A NATS server whose configuration is older, or not ours, has no such user.
RETRY_REFUSED_SECONDS = 60.0

log = logger()


class RefusedClients:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._refused: BoundedDict[tuple[str, str, str], RefusedClient] = BoundedDict(MAX_CLIENTS)

    def recent(self) -> list[RefusedClient]:
        since = time.time() - LISTED_SECONDS
        rows = [row for row in self._refused.values() if row.last_at >= since]
        return sorted(rows, key=lambda row: (row.client, row.user, row.address))

    async def run(self) -> None:
        """Listen for as long as the gateway runs. Does nothing for a NATS without users."""
        if self._settings.nats_user:
            while True:
                pause = await self._listen()
                await asyncio.sleep(pause)

    async def _listen(self) -> float:
        """Until the connection ends. Returns the seconds until the next attempt."""
        closed = asyncio.Event()

        async def ended() -> None:
            closed.set()

        async def ignore(error: Exception) -> None:
            """`connect` raises it, too."""

        context = tls_context(self._settings)
        try:
            client = await nats.connect(
                self._settings.nats_servers,
                user=subjects.MONITOR_USER,
                password=self._settings.nats_password.get_secret_value(),
                name=subjects.MONITOR_USER,
                tls=context,
                tls_handshake_first=context is not None,
                allow_reconnect=False,
                connect_timeout=5,
                closed_cb=ended,
                error_cb=ignore,
            )
        except nats.errors.Error as error:
            log.info("refused clients are not reported: NATS has no monitor", error=str(error))
            return RETRY_REFUSED_SECONDS
        except OSError:
            return RECONNECT_SECONDS
        try:
            await client.subscribe(subjects.REFUSED_CLIENTS, cb=self._note)
            await closed.wait()
        finally:
            await client.close()
        return RECONNECT_SECONDS

    async def _note(self, message: Msg) -> None:
        client: dict[str, Any] = json.loads(message.data)["client"]
        row = RefusedClient(
            client=client.get("name", ""),
            user=client.get("user", ""),
            address=client.get("host", ""),
            last_at=time.time(),
        )
        self._refused[row.client, row.user, row.address] = row
