"""One WebSocket client: its weights, and the messages that are to be sent to it."""

from __future__ import annotations

import asyncio

from pydantic import ValidationError

from services.gateway.analysis.ranking import DEFAULT_WEIGHTS, Weights
from services.gateway.live.schemas import WeightsMessage

# Four seconds of updates with many events. A client that is further behind is disconnected.
QUEUED_MESSAGES = 40
LONGEST_MESSAGE = 1000


class Client:
    def __init__(self) -> None:
        self.weights = DEFAULT_WEIGHTS
        self.needs_snapshot = True
        self.too_slow = asyncio.Event()
        self._messages: asyncio.Queue[str] = asyncio.Queue(QUEUED_MESSAGES)

    def offer(self, text: str) -> None:
        """Queue a message; when the queue is full the client is too slow and gets no more."""
        try:
            self._messages.put_nowait(text)
        except asyncio.QueueFull:
            self.too_slow.set()

    async def next(self) -> str:
        return await self._messages.get()

    def receive(self, text: str) -> None:
        """New weights change the client's ranking; other messages are ignored."""
        weights = read_weights(text)
        if weights is not None and weights != self.weights:
            self.weights = weights
            self.needs_snapshot = True


def read_weights(text: str) -> Weights | None:
    if len(text) > LONGEST_MESSAGE:
        return None
    try:
        message = WeightsMessage.model_validate_json(text)
    except ValidationError:
        return None
    weights = Weights(**message.model_dump(exclude={"type"}))
    return weights if weights.total > 0 else None
