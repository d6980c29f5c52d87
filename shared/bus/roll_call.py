"""Asks all running services to report; `shared.bus.service` answers."""

from __future__ import annotations

import secrets
from collections.abc import Collection

import nats.errors
from nats.aio.client import Client
from pydantic import ValidationError

from shared.messages import subjects
from shared.messages.events import ServiceReport
from shared.runtime.logs import logger

WAIT_SECONDS = 0.4

log = logger()


async def collect(
    client: Client, caller: str, timeout: float, schedulers: Collection[str] = ()
) -> list[ServiceReport]:
    """The reports of all services. Stops `timeout` seconds after the last reply, or as soon as
    workers of all these schedulers have replied."""
    # Not an inbox: permission to publish there would allow forging JetStream's replies.
    reply_subject = f"{subjects.PRESENT}.{caller}.{secrets.token_hex(8)}"
    replies = await client.subscribe(reply_subject)
    reports: list[ServiceReport] = []
    try:
        await client.publish(subjects.ROLL_CALL, b"", reply=reply_subject)
        while not schedulers or set(schedulers) - {report.scheduler for report in reports}:
            try:
                reply = await replies.next_msg(timeout=timeout)
            except nats.errors.TimeoutError:
                break
            if not reply.data:  # sent by the server when no service is subscribed
                continue
            try:
                reports.append(ServiceReport.model_validate_json(reply.data))
            except ValidationError as error:
                log.warning("unreadable reply to the roll call", error=str(error))
    finally:
        await replies.unsubscribe()
    return sorted(reports, key=lambda r: (r.service, r.scheduler, r.started_at, r.instance))
