"""The NATS client of a service: connection, subscribers, publishing, dead letters, roll calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Protocol, cast

import nats.errors
import nats.js.errors
from faststream import AckPolicy
from faststream.message import StreamMessage
from faststream.nats import JStream, NatsBroker, PullSub
from faststream.nats.message import NatsBatchMessage, NatsMessage
from nats.aio.client import Client as NatsClient
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, RawStreamMsg
from prometheus_client import CollectorRegistry, Counter
from pydantic import GetPydanticSchema
from pydantic_core import core_schema

from shared.bus import nats_patches, roll_call, streams
from shared.bus.dead_letter_middleware import DeadLetterMiddleware
from shared.bus.publisher import TRANSIENT_ERRORS, Publisher
from shared.bus.security import log_connection_error, nats_security, server_addresses
from shared.errors import TooNew, Unavailable, Unreadable
from shared.messages import batches, subjects
from shared.messages.envelope import Envelope, read_envelope
from shared.messages.events import Event, ServiceReport
from shared.runtime.extras import require
from shared.runtime.logs import logger
from shared.runtime.settings import Settings

if TYPE_CHECKING:
    from shared.bus.tracing import Tracing

DEAD_LETTER_HEADER_BYTES = 4096  # an upper limit

# On a batch that is replayed after newer ones of its subject: the envelope to continue from.
RESUME_FROM = "Hybrid-Go-On-From"
# On the reply to a request that could not be answered: why.
FAILED_HEADER = "Hybrid-Error"

# A pull for several messages waits for the last of them: with one message every 50 ms, a pull for
# four delays each by up to 150 ms. A message is a batch already, so one per pull is fast enough.
ONE_AT_A_TIME = PullSub(batch_size=1, timeout=1)

log = logger()

nats_patches.apply()


@dataclass(frozen=True, slots=True)
class LastMessage:
    """The newest message of a subject: its sequence in the stream, and its envelope."""

    sequence: int
    envelope: Envelope


_BYTES = core_schema.bytes_schema()
# The parameter of a handler. AsyncAPI describes it as what it carries.
Message = Annotated[NatsMessage, GetPydanticSchema(lambda *_: _BYTES)]
Messages = Annotated[
    NatsBatchMessage, GetPydanticSchema(lambda *_: core_schema.list_schema(_BYTES))
]


class Subscriber(Protocol):
    """What services use of FastStream's subscribers: as a decorator of the handler."""

    def __call__(self, handler: Callable[..., Awaitable[None]], /) -> object: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...


class Bus:
    def __init__(
        self,
        settings: Settings,
        service: str,
        registry: CollectorRegistry,
        *,
        client_name: str = "",
        creates_streams: bool = False,
    ) -> None:
        self.settings = settings
        self.service = service
        self._creates_streams = creates_streams
        self._inbox = subjects.inbox(settings.nats_user)
        self.tracing = _tracing(settings, service)
        self.broker = NatsBroker(
            settings.nats_servers,
            security=nats_security(settings),
            name=client_name or service,
            inbox_prefix=self._inbox,
            max_reconnect_attempts=-1,
            reconnect_time_wait=1,
            connect_timeout=5,
            ping_interval=10,
            ack_policy=AckPolicy.NACK_ON_ERROR,
            middlewares=[
                DeadLetterMiddleware(self),
                *([self.tracing.middleware] if self.tracing else []),
            ],
            # FastStream would inject dependencies, such as the message, in a thread: that takes
            # longer than most handlers.
            apply_types=False,
            decoder=_whole_message,
            logger=None,
            graceful_timeout=10,
        )
        # Past FastStream, whose callback raises if the server refuses a client, say while passwords
        # change: nats-py would stop reconnecting and stay disconnected for ever.
        self.broker._connection_kwargs["error_cb"] = log_connection_error
        self._rejected = Counter(
            "hybrid_rejected_messages_total",
            "Messages that went to the dead letters",
            ["service"],
            registry=registry,
        ).labels(service)  # starts at 0, so that the first increase is visible
        timeout = settings.publish_timeout.total_seconds()
        self.publish = Publisher(lambda: self.jetstream, timeout, registry).publish
        self.redelivered = Counter(
            "hybrid_redelivered_messages_total",
            "Messages whose handler failed and that are delivered again",
            registry=registry,
        )

    @property
    def jetstream(self) -> JetStreamContext:
        context = self.broker.config.connection_state.stream
        assert isinstance(context, JetStreamContext)
        return context

    @property
    def _client(self) -> NatsClient:
        client = self.broker._connection
        if client is None:
            raise Unavailable("not connected to NATS")
        return client

    @property
    def connected(self) -> bool:
        client = self.broker._connection
        return client is not None and bool(client.is_connected)

    @property
    def gave_up(self) -> bool:
        """Whether the client will never connect again: nats-py closes it after some errors of the
        server, and stops reconnecting after an answer that it cannot parse."""
        client = self.broker._connection
        if client is None or client.is_connected:
            return False
        reconnecting = client._reconnection_task
        return reconnecting is None or reconnecting.done()

    @property
    def _max_dead_letter_body(self) -> int:
        """A message of the largest size leaves no space for the headers of a dead letter."""
        client = self.broker._connection
        return client.max_payload - DEAD_LETTER_HEADER_BYTES if client is not None else 0

    async def connect(self) -> None:
        """Connect and wait for the streams, as long as it takes.

        Only the generator creates them, so that only its NATS user needs the permission.
        """
        prepare = streams.create if self._creates_streams else streams.check
        while True:
            try:
                await self.broker.connect()
                return await prepare(self.jetstream, self.settings)
            except nats.js.errors.NotFoundError:
                log.info("waiting for the generator, which creates the streams")
                await asyncio.sleep(0.2)
            except TRANSIENT_ERRORS as error:
                servers = server_addresses(self.settings)
                log.warning("waiting for NATS", servers=servers, error=repr(error))
                await asyncio.sleep(1)

    def subscriber(
        self,
        stream: str,
        consumer: ConsumerConfig,
        *,
        pull: PullSub = ONE_AT_A_TIME,
        **options: Any,
    ) -> Subscriber:
        """A FastStream subscriber that pulls from a durable consumer of an existing stream."""
        subscriber = self.broker.subscriber(
            consumer.filter_subject or "",
            stream=JStream(stream, declare=False),
            durable=consumer.durable_name,
            config=consumer,
            pull_sub=pull,
            # FastStream does not use the connection's own prefix.
            inbox_prefix=f"{self._inbox}.".encode(),
            **options,
        )
        return cast(Subscriber, subscriber)

    async def ensure_consumer(self, stream: str, config: ConsumerConfig) -> None:
        """Create a durable consumer, or update an existing one to this configuration."""
        await self.jetstream.add_consumer(stream, config)

    async def create_consumer(self, stream: str, config: ConsumerConfig) -> None:
        """Create a durable consumer, unless there is one: where it started cannot be changed."""
        assert config.durable_name is not None
        try:
            await self.jetstream.consumer_info(stream, config.durable_name)
        except nats.js.errors.NotFoundError:
            await self.jetstream.add_consumer(stream, config)

    async def publish_batch(
        self, batch: batches.Batch, *, after: int | None = None, once: bool = False
    ) -> int:
        envelope, began = batch.envelope, time.time_ns()
        sequence = await self.publish(
            envelope.subject,
            batches.encode(envelope, batch.rows),
            stream=envelope.kind.upper(),
            message_id=envelope.message_id,
            after=after,
            once=once,
        )
        if self.tracing:
            self.tracing.published(envelope, batch.rows.num_rows, began)
        return sequence

    async def broadcast(self, subject: str, body: bytes) -> None:
        """Send it to the current subscribers; it is not stored."""
        await self._client.publish(subject, body)

    async def request(self, subject: str, body: bytes, timeout: float) -> Msg:
        """The reply of one of the subscribers."""
        return await self._client.request(subject, body, timeout=timeout)

    async def last_message(
        self,
        subject: str,
        stream: str,
        check: Callable[[Envelope], object] | None = None,
        *,
        delete_unreadable: bool = True,
    ) -> LastMessage | None:
        """The newest readable message of a subject for which `check` does not raise Unreadable.

        Unreadable messages after it become dead letters, so that the sequence can be continued: by
        the service that continues it, while others wait (`delete_unreadable=False`). The
        stream's leader answers, not the nearest server (`direct`), which may have an older message.
        """
        while True:
            try:
                message = await self.jetstream.get_last_msg(stream, subject)
            except nats.js.errors.NotFoundError:
                return None
            sequence = message.seq or 0
            try:
                envelope = _position_after(message, subject)
                if check is not None:
                    check(envelope)
                return LastMessage(sequence, envelope)
            except TooNew as error:
                # Not garbage: a newer version of the program can continue from it.
                raise Unavailable(f"{subject}: {error}") from None
            except Unreadable as error:
                if not delete_unreadable:
                    raise Unavailable(f"{subject}: the last message is unreadable") from None
                await self.reject(subject, stream, sequence, message.data or b"", str(error))
                await self.jetstream.delete_msg(stream, sequence)

    async def reject(
        self, subject: str, stream: str, sequence: int, body: bytes, reason: str
    ) -> None:
        """Store a copy in REJECTED: once for all consumers that reject the same message within
        `duplicate_window`; a later one adds a second copy."""
        log.warning("message rejected", subject=subject, sequence=sequence, reason=reason)
        self._rejected.inc()
        headers = {
            "Hybrid-Reason": one_line(reason),
            "Hybrid-Subject": one_line(subject),
            "Hybrid-Stream": stream,
            "Hybrid-Sequence": str(sequence),
            "Hybrid-Size": str(len(body)),  # the body may be truncated
        }
        origin = f"{stream}.{sequence}"
        await self.publish(
            subjects.rejected(self.service),
            body[: self._max_dead_letter_body],
            stream=subjects.REJECTED,
            message_id=f"rejected.{origin}",
            headers=headers,
        )
        if subject != subjects.event("rejected"):  # or a refused event would announce itself
            event = Event(
                kind="rejected",
                service=self.service,
                message=f"message {sequence} on {one_line(subject)} rejected: {one_line(reason)}",
            )
            await self.publish_event(event, message_id=f"event.rejected.{origin}")

    async def publish_event(self, event: Event, *, message_id: str) -> None:
        """Publish an event; the same id is stored once, even if several processes publish it."""
        await self.publish(
            subjects.event(event.kind),
            event.model_dump_json().encode(),
            stream=subjects.EVENTS,
            message_id=message_id,
        )

    async def roll_call(
        self, timeout: float = roll_call.WAIT_SECONDS, schedulers: Collection[str] = ()
    ) -> list[ServiceReport]:
        """The reports of all running services, or as many as came before those of these
        schedulers' workers were complete."""
        caller = self.settings.nats_user or self.service
        return await roll_call.collect(self._client, caller, timeout, schedulers)

    async def listen(self, subject: str, handler: Callable[[Msg], Awaitable[None]]) -> Subscription:
        """Subscribe to new messages without acknowledgements, for live views."""
        return await self._client.subscribe(subject, cb=handler)


def _tracing(settings: Settings, service: str) -> Tracing | None:
    """Imported only where it is wanted: its library is large, and an extra."""
    if not settings.traces:
        return None
    require("opentelemetry.sdk")
    from shared.bus.tracing import Tracing

    return Tracing(settings.traces, service)


def _position_after(message: RawStreamMsg, subject: str) -> Envelope:
    """The envelope to continue the sequence from: the message's own, unless it is a replay."""
    envelope = batches.decode(message.data or b"", subject).envelope
    resume_from = (message.headers or {}).get(RESUME_FROM)
    if resume_from is None:
        return envelope
    newest = read_envelope(resume_from, envelope.kind)
    if newest.subject != subject:
        raise Unreadable(f"a replay that continues from a message of {newest.subject}")
    return newest


async def _whole_message(message: StreamMessage[Any]) -> StreamMessage[Any]:
    """Handlers take the message itself: its body, subject, headers."""
    return message


def one_line(text: str) -> str:
    """Header values are single lines of ASCII; a reason may quote anything."""
    return " ".join(text.split()).encode("ascii", "replace").decode()[:500]
