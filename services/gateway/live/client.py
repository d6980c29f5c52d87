"""One who watches: what it weighs, and the messages it has still to be sent."""

from __future__ import annotations

import asyncio
import json
import math

from services.gateway.ranking import Weights

# Eight seconds of updates: who is further behind does not read.
KEPT_MESSAGES = 16
LONGEST_MESSAGE = 1000
HEAVIEST = 100.0


class Client:
    def __init__(self) -> None:
        self.weights = Weights()
        self.fresh = True  # is owed a snapshot
        self.overrun = asyncio.Event()
        self._messages: asyncio.Queue[str] = asyncio.Queue(KEPT_MESSAGES)

    def offer(self, text: str) -> None:
        """Queue a message; a client that does not read is marked, and gets no more."""
        try:
            self._messages.put_nowait(text)
        except asyncio.QueueFull:
            self.overrun.set()

    async def next(self) -> str:
        return await self._messages.get()

    def hear(self, text: str) -> None:
        """What a client says. Weights change its ranking; anything else is ignored."""
        weights = read_weights(text)
        if weights is not None and weights != self.weights:
            self.weights = weights
            self.fresh = True


def read_weights(text: str) -> Weights | None:
    if len(text) > LONGEST_MESSAGE:
        return None
    try:
        said = json.loads(text)
        if said["type"] != "weights":
            return None
        given = [float(said.get(name, 0)) for name in ("time", "energy", "cost")]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None
    sane = all(math.isfinite(value) and 0 <= value <= HEAVIEST for value in given)
    return Weights(*given) if sane and sum(given) > 0 else None
