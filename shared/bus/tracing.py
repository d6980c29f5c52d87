"""OpenTelemetry traces: one for each batch, from its tasks on the bus to its stored results.

A span stands for making a message, or for storing one. Its id is computed from the message's id,
and the trace's id from the run and the batch. So no context has to be sent along, and a batch that
is redelivered stays in its trace. Off, and without any cost, unless HYBRID_TRACES is set.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Literal

from faststream import BaseMiddleware
from faststream.message import StreamMessage
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags

from shared.messages.envelope import Envelope

# The message that a message is made from.
MADE_FROM = {"decisions": "tasks", "results": "decisions"}

# When the handler that runs now was called: nanoseconds.
_called_at: ContextVar[int] = ContextVar("called_at")


class Tracing:
    def __init__(self, exporter: Literal["otlp", "console"], service: str) -> None:
        self._ids = _Ids()
        resource = Resource.create({"service.namespace": "hybrid", "service.name": service})
        # OpenTelemetry's own variables say where to send them, and which share of the batches.
        self._provider = TracerProvider(
            id_generator=self._ids, resource=resource, shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(_exporter(exporter)))
        self._tracer = self._provider.get_tracer("hybrid")

    def published(self, envelope: Envelope, rows: int, since: int) -> None:
        """A batch was published. The span starts when the handler was called, without a handler at
        `since`: nanoseconds."""
        parent = MADE_FROM.get(envelope.kind)
        made_from = None if parent is None else _parent(envelope, parent)
        name, kind = f"{envelope.kind} {envelope.scheduler}".strip(), SpanKind.PRODUCER
        self._record(envelope, name, kind, made_from, rows, _called_at.get(since))

    def stored(self, envelope: Envelope, rows: int, since: int) -> None:
        """A batch was stored in ClickHouse."""
        name = f"store {envelope.kind} {envelope.scheduler}".strip()
        self._record(envelope, name, SpanKind.CONSUMER, envelope, rows, since)

    def _record(
        self,
        envelope: Envelope,
        name: str,
        kind: SpanKind,
        parent: Envelope | None,
        rows: int,
        since: int,
    ) -> None:
        own = envelope.message_id if kind is SpanKind.PRODUCER else f"store {envelope.message_id}"
        self._ids.trace_id, self._ids.span_id = _trace_id(envelope), _span_id(own)
        span = self._tracer.start_span(
            name,
            None if parent is None else _context(parent),
            kind,
            {
                "messaging.system": "nats",
                "messaging.destination.name": envelope.subject,
                "messaging.message.id": envelope.message_id,
                "hybrid.run": envelope.run,
                "hybrid.batch": envelope.batch,
                "hybrid.tasks": rows,
            },
            start_time=since,
        )
        span.end()

    def middleware(self, message: Any, /, *, context: Any) -> BaseMiddleware[Any, Any]:
        return _Handling(message, context=context)

    def close(self) -> None:
        """Send what is left; blocks."""
        self._provider.shutdown()


class _Ids(IdGenerator):
    """The ids of the next span."""

    trace_id = span_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return self.span_id


class _Handling(BaseMiddleware[Any, Any]):
    async def consume_scope(
        self, call_next: Callable[[Any], Awaitable[Any]], msg: StreamMessage[Any]
    ) -> Any:
        _called_at.set(time.time_ns())
        return await call_next(msg)


def _exporter(name: Literal["otlp", "console"]) -> SpanExporter:
    if name == "console":
        return ConsoleSpanExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def _parent(envelope: Envelope, kind: str) -> Envelope:
    scheduler = "" if kind == "tasks" else envelope.scheduler
    return replace(envelope, kind=kind, scheduler=scheduler)


def _context(parent: Envelope) -> Any:
    """The context of the span that made this message, in any process."""
    flags = TraceFlags(TraceFlags.SAMPLED)
    span = SpanContext(_trace_id(parent), _span_id(parent.message_id), True, flags)
    return trace.set_span_in_context(NonRecordingSpan(span))


def _trace_id(envelope: Envelope) -> int:
    return _number(f"{envelope.run}.{envelope.batch}", 16)


def _span_id(message_id: str) -> int:
    return _number(message_id, 8)


def _number(text: str, size: int) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=size).digest()) or 1
