"""Patches for nats-py: bugs that FastStream's pull subscribers run into, and the read size."""

from __future__ import annotations

import asyncio
from typing import Any

import nats.aio.client
import nats.errors
from nats.aio.msg import Msg
from nats.js import JetStreamContext

RETRY_SECONDS = 0.1
# nats-py reads 32 KiB at a time, and a batch of results is ten times as large.
READ_BYTES = 512 * 1024

_fetch = JetStreamContext.PullSubscription.fetch
_status = JetStreamContext.is_status_msg


async def _fetch_or_time_out(*args: Any, **options: Any) -> list[Msg]:
    """A fetch that times out raises one of two exceptions, and FastStream handles only the other:
    its consuming task would end and lose the messages that it had fetched. While a cluster elects
    the consumer's leader, FastStream would fetch again at once and keep a core busy."""
    try:
        return await _fetch(*args, **options)
    except TimeoutError as error:
        raise nats.errors.TimeoutError from error
    except nats.errors.Error as error:
        await asyncio.sleep(RETRY_SECONDS)
        raise nats.errors.TimeoutError from error


def _status_of_the_server(message: Msg | None) -> str | None:
    """nats-py takes every message with a header `Status` for the server's reply to a fetch. A
    stored message with that header would end the consumer, again after each restart."""
    if message is not None and message.reply.startswith("$JS.ACK."):
        return None
    return _status(message)


def apply() -> None:
    nats.aio.client.DEFAULT_BUFFER_SIZE = READ_BYTES
    JetStreamContext.PullSubscription.fetch = _fetch_or_time_out  # type: ignore[method-assign]
    JetStreamContext.is_status_msg = staticmethod(  # type: ignore[assignment,method-assign]
        _status_of_the_server
    )
