"""What happens to a message whose handler raises, for every subscriber.

Unreadable: it becomes a dead letter and is acknowledged. Any other error may be transient: the
message is redelivered after a delay.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from faststream import BaseMiddleware
from faststream.exceptions import HandlerException
from faststream.message import StreamMessage
from faststream.nats.message import NatsBatchMessage, NatsMessage
from nats.aio.msg import Msg

from shared.errors import Unavailable, Unreadable
from shared.runtime.logs import logger
from shared.runtime.settings import Settings

if TYPE_CHECKING:
    from shared.bus.client import Bus

log = logger()


class DeadLetterMiddleware:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def __call__(self, message: Any, /, *, context: Any) -> BaseMiddleware[Any, Any]:
        return _Middleware(message, context=context, bus=self._bus)


class _Middleware(BaseMiddleware[Any, Any]):
    def __init__(self, message: Any, /, *, context: Any, bus: Bus) -> None:
        super().__init__(message, context=context)
        self._bus = bus

    async def consume_scope(
        self, call_next: Callable[[Any], Awaitable[Any]], msg: StreamMessage[Any]
    ) -> Any:
        try:
            return await call_next(msg)
        except HandlerException:
            raise
        except Unreadable as error:
            raw = msg.raw_message
            if not isinstance(raw, Msg):
                raise
            metadata = raw.metadata
            await self._bus.reject(
                raw.subject, metadata.stream, metadata.sequence.stream, raw.data, str(error)
            )
            await msg.ack()
        except Exception as error:
            # A traceback of a service that does not answer would say nothing more.
            unexpected = not isinstance(error, Unavailable)
            log.warning("message is redelivered", error=repr(error), exc_info=unexpected)
            self._bus.redelivered.inc()
            await redeliver(msg, self._bus.settings)


async def redeliver(message: StreamMessage[Any], settings: Settings) -> None:
    """To any worker, after a delay."""
    assert isinstance(message, (NatsMessage, NatsBatchMessage))
    await message.nack(delay=settings.retry_delay.total_seconds())
