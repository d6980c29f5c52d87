"""Where nats-py and FastStream do not go together: what pulling needs mended of nats-py."""

from __future__ import annotations

import asyncio
from typing import Any

import nats.errors
from nats.aio.msg import Msg
from nats.js import JetStreamContext

AGAIN_SECONDS = 0.1  # after an answer that is no time-out

_fetch = JetStreamContext.PullSubscription.fetch
_status = JetStreamContext.is_status_msg


async def _fetch_or_time_out(*args: Any, **options: Any) -> list[Msg]:
    """nats-py ends a fetch whose time is up with one of two exceptions, and FastStream knows only
    the other: its consuming task would die, with the messages that it had collected. While a
    cluster elects the consumer's leader it would ask again at once, and keep a core busy."""
    try:
        return await _fetch(*args, **options)
    except TimeoutError as error:
        raise nats.errors.TimeoutError from error
    except nats.errors.Error as error:
        await asyncio.sleep(AGAIN_SECONDS)
        raise nats.errors.TimeoutError from error


def _word_of_the_server(message: Msg | None) -> str | None:
    """nats-py takes every message with a header `Status` for the server's word on a fetch. One that
    is stored would end the reader, and come again after each restart."""
    if message is not None and message.reply.startswith("$JS.ACK."):
        return None
    return _status(message)


def mend() -> None:
    JetStreamContext.PullSubscription.fetch = _fetch_or_time_out  # type: ignore[method-assign]
    JetStreamContext.is_status_msg = staticmethod(  # type: ignore[assignment,method-assign]
        _word_of_the_server
    )
