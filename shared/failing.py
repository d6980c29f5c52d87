"""What becomes of a message whose handler fails, for every subscriber alike.

Unreadable: to the dead letters, then acknowledged. Anything else may pass: given back, to be
delivered again after a delay. Nothing is dropped in silence.
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
from shared.logs import logger
from shared.settings import Settings

if TYPE_CHECKING:
    from shared.bus import Bus

log = logger()


class DeadLetters:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def __call__(self, message: Any, /, *, context: Any) -> BaseMiddleware[Any, Any]:
        return _DeadLetters(message, context=context, bus=self._bus)


class _DeadLetters(BaseMiddleware[Any, Any]):
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
            place = raw.metadata
            await self._bus.reject(
                raw.subject, place.stream, place.sequence.stream, raw.data, str(error)
            )
            await msg.ack()
        except Exception as error:
            # What does not answer is named; where we asked it says nothing more, many times over.
            unexpected = not isinstance(error, Unavailable)
            log.warning("message is given back", error=repr(error), exc_info=unexpected)
            self._bus.given_back.inc()
            await give_back(msg, self._bus.settings)


async def give_back(message: StreamMessage[Any], settings: Settings) -> None:
    """To be delivered again, to whoever asks first, after a delay."""
    assert isinstance(message, (NatsMessage, NatsBatchMessage))
    await message.nack(delay=settings.retry_delay.total_seconds())
