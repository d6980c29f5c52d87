"""The bus: publishing that is acknowledged, sequences that cannot fork, dead letters, roll calls.

Every publish waits for the stream's acknowledgement and is retried under the same message id
until it is stored, so a caller may acknowledge its own input as soon as `publish` returns.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import nats.errors
import nats.js.errors
from faststream import AckPolicy
from faststream.message import StreamMessage
from faststream.nats import JStream, NatsBroker, PullSub
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, Header, RawStreamMsg
from prometheus_client import CollectorRegistry, Counter
from pydantic import ValidationError

from shared import batches, pulling, subjects
from shared.connection import log_connection_error, security_of, shown
from shared.errors import Conflict, TooNew, Unavailable, Unreadable
from shared.events import Event, ServiceReport
from shared.failing import DeadLetters
from shared.logs import logger
from shared.settings import Settings

WRONG_LAST_SEQUENCE = 10071
STREAM_FULL = {10077, 10122, 10123}  # bytes, messages, messages of a subject
# Of a server that is alive but cannot say yet: this id is being stored; too many requests.
NOT_YET = {10158, 10167}

HEADER_BYTES = 4096  # more than the headers of a dead letter ever take

# On a batch that is sent again although its sequence has gone on: the envelope to go on from.
GO_ON_FROM = "Hybrid-Go-On-From"

# What a server that restarts, or a connection that is being made again, shows itself as.
PASSING = (
    nats.errors.Error,
    asyncio.TimeoutError,
    ConnectionError,
)

# A pull for several messages waits for the last of them: with one message every 50 ms, a pull for
# four holds each back up to 150 ms. A message is a batch already, so one a pull is fast as well.
ONE_AT_A_TIME = PullSub(batch_size=1, timeout=1)

log = logger()

pulling.mend()


@dataclass(frozen=True, slots=True)
class Last:
    """The newest message of a subject: its place in the stream and what it says of itself."""

    sequence: int
    envelope: batches.Envelope


class Bus:
    def __init__(
        self,
        settings: Settings,
        service: str,
        registry: CollectorRegistry,
        *,
        keeps_streams: bool = False,
    ) -> None:
        self.settings = settings
        self.service = service
        self._keeps_streams = keeps_streams
        self._inbox = subjects.inbox(settings.nats_user)
        self.broker = NatsBroker(
            settings.nats_servers,
            security=security_of(settings),
            name=service,
            inbox_prefix=self._inbox,
            max_reconnect_attempts=-1,
            reconnect_time_wait=1,
            connect_timeout=5,
            ping_interval=10,
            ack_policy=AckPolicy.NACK_ON_ERROR,
            middlewares=[DeadLetters(self)],
            decoder=_raw,
            logger=None,
            error_cb=log_connection_error,
            graceful_timeout=10,
        )
        self._rejected = Counter(
            "hybrid_rejected_messages_total",
            "Messages that went to the dead letters",
            ["service"],
            registry=registry,
        ).labels(service)  # from 0 on: a rise from nothing would not be seen as one
        self._full = Counter(
            "hybrid_stream_full_total",
            "Publishes that had to wait because the stream was full",
            ["stream"],
            registry=registry,
        )
        self._retries = Counter(
            "hybrid_publish_retries_total",
            "Publishes that were tried again, a full stream included",
            ["stream"],
            registry=registry,
        )
        self.given_back = Counter(
            "hybrid_given_back_messages_total",
            "Messages whose handler failed, to be delivered again",
            registry=registry,
        )

    @property
    def stream(self) -> JetStreamContext:
        context = self.broker.config.connection_state.stream
        assert isinstance(context, JetStreamContext)
        return context

    @property
    def inbox_prefix(self) -> bytes:
        """For FastStream's pull subscribers, which would not ask the connection for its own."""
        return f"{self._inbox}.".encode()

    @property
    def connected(self) -> bool:
        client = self.broker._connection
        return client is not None and bool(client.is_connected)

    @property
    def _room_beside_headers(self) -> int:
        """A message of the largest size leaves no room for the headers of a dead letter."""
        client = self.broker._connection
        return client.max_payload - HEADER_BYTES if client is not None else 0

    async def connect(self) -> None:
        """Connect and see that the streams are there, waiting as long as it takes.

        The service that keeps the streams makes them, so that just one needs the right to.
        """
        prepare = self._make_streams if self._keeps_streams else self._find_streams
        while True:
            try:
                await self.broker.connect()
                return await prepare()
            except nats.js.errors.NotFoundError:
                log.info("waiting for the generator, which makes the streams")
                await asyncio.sleep(0.2)
            except PASSING as error:
                servers = shown(self.settings)
                log.warning("waiting for NATS", servers=servers, error=repr(error))
                await asyncio.sleep(1)

    async def _find_streams(self) -> None:
        for config in subjects.streams(self.settings):
            assert config.name is not None
            await self.stream.stream_info(config.name)

    async def _make_streams(self) -> None:
        for config in subjects.streams(self.settings):
            assert config.name is not None
            try:
                found = await self.stream.stream_info(config.name)
                # Where a stream is stored cannot be changed.
                await self.stream.update_stream(config, storage=found.config.storage)
            except nats.js.errors.NotFoundError:
                await self.stream.add_stream(config)

    async def make_durable(self, stream: str, config: ConsumerConfig) -> None:
        """Make a durable consumer, or bring an existing one up to this configuration."""
        await self.stream.add_consumer(stream, config)

    async def publish(
        self,
        subject: str,
        body: bytes,
        *,
        stream: str,
        message_id: str,
        after: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> int:
        """Publish until the stream has it; returns its sequence number.

        With `after` (the sequence of the subject's last message, 0 for none) the message is stored
        only as the next one behind it. Conflict means that another one is there already; if that
        is this very message, published by an attempt whose answer was lost, all is well.
        """
        sent = {**(headers or {}), Header.MSG_ID: message_id}
        if after is not None:
            sent[Header.EXPECTED_LAST_SUBJECT_SEQUENCE] = str(after)
        delay = 0.05
        while True:
            try:
                ack = await self.stream.publish(
                    subject,
                    body,
                    timeout=self.settings.publish_timeout.total_seconds(),
                    stream=stream,
                    headers=sent,
                )
                if after is None or not ack.duplicate:
                    return int(ack.seq)
                # A cluster looks at the id first: what it has stored under it may be another's.
                return await self._resolve_conflict(subject, stream, body, after)
            except nats.js.errors.APIError as error:
                if error.err_code == WRONG_LAST_SEQUENCE and after is not None:
                    return await self._resolve_conflict(subject, stream, body, after)
                if error.err_code in STREAM_FULL:
                    self._full.labels(stream).inc()
                elif error.err_code in NOT_YET or (error.code or 500) >= 500:
                    log.warning("publish is retried", subject=subject, error=repr(error))
                else:
                    raise
            except nats.errors.MaxPayloadError:
                raise  # no retry will make it smaller
            except PASSING as error:
                log.warning("publish is retried", subject=subject, error=repr(error))
            self._retries.labels(stream).inc()
            await asyncio.sleep(delay)
            delay = min(delay * 2, 1.0)

    async def _resolve_conflict(self, subject: str, stream: str, body: bytes, after: int) -> int:
        """Whether the message behind `after` is this one; others may follow it by now.

        The body decides, not the id: two publishers give the same place in a sequence one id.
        """
        with suppress(nats.js.errors.NotFoundError):
            there = await self.stream.get_msg(stream, seq=after + 1, subject=subject, next=True)
            if there.data == body and there.seq is not None:
                return there.seq
        raise Conflict(f"{subject} was advanced by another instance")

    async def publish_batch(self, batch: batches.Batch, *, after: int | None = None) -> int:
        envelope = batch.envelope
        return await self.publish(
            envelope.subject,
            batches.encode(envelope, batch.rows),
            stream=envelope.kind.upper(),
            message_id=envelope.message_id,
            after=after,
        )

    async def last(
        self, subject: str, stream: str, check: Callable[[batches.Envelope], object] | None = None
    ) -> Last | None:
        """The newest message of a subject that can be read and that `check` has nothing against.

        Garbage behind it is moved to the dead letters: whoever continues the sequence must not
        stumble over it. The stream's leader is asked, not the nearest server (`direct`): what is
        decided on the answer, such as that a run is complete, must not rest on an older message.
        """
        while True:
            try:
                message = await self.stream.get_last_msg(stream, subject)
            except nats.js.errors.NotFoundError:
                return None
            sequence = message.seq or 0
            try:
                envelope = _stands_at(message, subject)
                if check is not None:
                    check(envelope)
                return Last(sequence, envelope)
            except TooNew as error:
                # Not garbage: a newer version goes on from it, if it is left alone.
                raise Unavailable(f"{subject}: {error}") from None
            except Unreadable as error:
                await self.reject(subject, stream, sequence, message.data or b"", str(error))
                await self.stream.delete_msg(stream, sequence)

    async def reject(
        self, subject: str, stream: str, sequence: int, body: bytes, reason: str
    ) -> None:
        """Put a message that cannot be understood with the dead letters, once for all readers that
        meet it while the bus remembers ids (`duplicate_window`); a later one adds a second."""
        log.warning("message rejected", subject=subject, sequence=sequence, reason=reason)
        self._rejected.inc()
        headers = {
            "Hybrid-Reason": _one_line(reason),
            "Hybrid-Subject": _one_line(subject),
            "Hybrid-Stream": stream,
            "Hybrid-Sequence": str(sequence),
            "Hybrid-Size": str(len(body)),  # the body is cut when it leaves no room for these
        }
        origin = f"{stream}.{sequence}"
        await self.publish(
            subjects.rejected(self.service),
            body[: self._room_beside_headers],
            stream=subjects.REJECTED,
            message_id=f"rejected.{origin}",
            headers=headers,
        )
        note = Event(
            kind="rejected",
            service=self.service,
            message=f"message {sequence} on {_one_line(subject)} rejected: {_one_line(reason)}",
        )
        await self.tell(note, message_id=f"event.rejected.{origin}")

    async def tell(self, event: Event, *, message_id: str) -> None:
        """Publish an event; one id is told once however many processes notice it."""
        await self.publish(
            subjects.event(event.kind),
            event.model_dump_json().encode(),
            stream=subjects.EVENTS,
            message_id=message_id,
        )

    async def listen(self, subject: str, take: Callable[[Msg], Awaitable[None]]) -> Subscription:
        """Hear what passes from now on, without an account of what was heard: for live views."""
        client = self.broker._connection
        if client is None:
            raise Unavailable("not connected to NATS")
        return await client.subscribe(subject, cb=take)

    async def roll_call(self, patience: float = 0.4) -> list[ServiceReport]:
        """Everybody who answers: once nobody has for `patience` seconds, all have."""
        client = self.broker._connection
        if client is None:
            raise Unavailable("not connected to NATS")
        # Not an inbox: the right to answer there would be the right to answer for the bus itself.
        asker = self.settings.nats_user or self.service
        place = f"{subjects.PRESENT}.{asker}.{secrets.token_hex(8)}"
        answers = await client.subscribe(place)
        reports = []
        try:
            await client.publish(subjects.ROLL_CALL, b"", reply=place)
            while True:
                try:
                    answer = await answers.next_msg(timeout=patience)
                except nats.errors.TimeoutError:
                    break
                if not answer.data:  # the server's: nobody listens
                    continue
                try:
                    reports.append(ServiceReport.model_validate_json(answer.data))
                except ValidationError as error:
                    log.warning("an answer to the roll call is passed over", error=str(error))
        finally:
            await answers.unsubscribe()
        return sorted(reports, key=lambda r: (r.service, r.scheduler, r.started_at, r.instance))


def existing(stream: str) -> JStream:
    """A stream that `Bus.connect` has made, for FastStream's subscribers."""
    return JStream(stream, declare=False)


def _stands_at(message: RawStreamMsg, subject: str) -> batches.Envelope:
    """What the sequence goes on from: the newest batch, whichever one the newest message has."""
    envelope = batches.decode(message.data or b"", subject).envelope
    if (said := (message.headers or {}).get(GO_ON_FROM)) is None:
        return envelope
    if (ahead := batches.read_envelope(said, envelope.kind)).subject != subject:
        raise Unreadable(f"goes on from a message of {ahead.subject}")
    return ahead


async def _raw(message: StreamMessage[Any]) -> Any:
    return message.body


def _one_line(text: str) -> str:
    """Headers are lines of plain text; a reason may quote anything."""
    return " ".join(text.split()).encode("ascii", "replace").decode()[:500]
