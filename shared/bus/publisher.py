"""Publishes messages until a stream has stored them, with compare-and-set.

Every publish waits for the stream's acknowledgement and is retried under the same message id
until it is stored, so a caller may acknowledge its own input as soon as `publish` returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import nats.errors
import nats.js.errors
from nats.js import JetStreamContext
from nats.js.api import Header
from prometheus_client import CollectorRegistry, Counter

from shared.errors import Conflict
from shared.runtime.logs import logger

WRONG_LAST_SEQUENCE = 10071
STREAM_FULL = {10077, 10122, 10123}  # bytes, messages, messages of a subject
# The server is alive but busy: this message id is being stored, or there are too many requests.
BUSY = {10158, 10167}

# Errors of a server that restarts or a connection that is being restored.
TRANSIENT_ERRORS = (
    nats.errors.Error,
    asyncio.TimeoutError,
    ConnectionError,
)

log = logger()


class Publisher:
    def __init__(
        self,
        jetstream: Callable[[], JetStreamContext],
        timeout_seconds: float,
        registry: CollectorRegistry,
    ) -> None:
        """`timeout_seconds`: of one attempt."""
        self._jetstream = jetstream
        self._timeout = timeout_seconds
        self._full = Counter(
            "hybrid_stream_full_total",
            "Publish attempts refused because the stream was full",
            ["stream"],
            registry=registry,
        )
        self._retries = Counter(
            "hybrid_publish_retries_total",
            "Publish attempts that were retried, full streams included",
            ["stream"],
            registry=registry,
        )

    async def publish(
        self,
        subject: str,
        body: bytes,
        *,
        stream: str,
        message_id: str,
        after: int | None = None,
        once: bool = False,
        headers: dict[str, str] | None = None,
    ) -> int:
        """Publish until the stream has stored it; returns its sequence number.

        With `once`, Conflict is raised if a message with this id was stored before.
        With `after` (the sequence of the subject's last message, 0 for none) this is a
        compare-and-set: Conflict is raised if another message follows `after` already, unless that
        is this very message, stored by an attempt whose acknowledgement was lost.
        """
        all_headers = {**(headers or {}), Header.MSG_ID: message_id}
        if after is not None:
            all_headers[Header.EXPECTED_LAST_SUBJECT_SEQUENCE] = str(after)
        delay = 0.05
        while True:
            try:
                ack = await self._jetstream().publish(
                    subject,
                    body,
                    timeout=self._timeout,
                    stream=stream,
                    headers=all_headers,
                )
                if ack.duplicate and once:
                    raise Conflict(f"{message_id} was published before")
                if after is None or not ack.duplicate:
                    return int(ack.seq)
                # A cluster checks the id first: another instance's message may be stored under it.
                return await self._resolve_conflict(subject, stream, body, message_id, after)
            except nats.js.errors.APIError as error:
                if error.err_code == WRONG_LAST_SEQUENCE and after is not None:
                    return await self._resolve_conflict(subject, stream, body, message_id, after)
                if error.err_code in STREAM_FULL:
                    self._full.labels(stream).inc()
                elif error.err_code in BUSY or (error.code or 500) >= 500:
                    log.warning("publish is retried", subject=subject, error=repr(error))
                else:
                    raise
            except nats.errors.MaxPayloadError:
                raise  # no retry will make it smaller
            except TRANSIENT_ERRORS as error:
                log.warning("publish is retried", subject=subject, error=repr(error))
            self._retries.labels(stream).inc()
            await asyncio.sleep(delay)
            delay = min(delay * 2, 1.0)

    async def _resolve_conflict(
        self, subject: str, stream: str, body: bytes, message_id: str, after: int
    ) -> int:
        """The sequence of the message after `after`, if it is this one; else Conflict.

        Bodies and ids are compared: two publishers use one id for the same batch, and a model that
        is rolled back to has the body of an older version.
        """
        with suppress(nats.js.errors.NotFoundError):
            stored = await self._jetstream().get_msg(
                stream, seq=after + 1, subject=subject, next=True
            )
            stored_id = (stored.headers or {}).get(Header.MSG_ID)
            if stored.data == body and stored_id == message_id and stored.seq is not None:
                return stored.seq
        raise Conflict(f"{subject} was advanced by another instance")
