"""The queue of parts of one device. They run in the order of their tasks, as in the simulator.

A part that waited for parents, or for its task's other part, still runs before later tasks.
"""

from __future__ import annotations

import asyncio
import time
from bisect import insort
from collections import deque
from collections.abc import Callable
from typing import Protocol

from services.executor.jobs import Part
from shared.execution.device_process import Measured, Work


class Device(Protocol):
    """The methods of a `DeviceProcess` that a queue uses."""

    async def start(self) -> None: ...
    async def run(self, work: Work) -> Measured: ...
    async def stop(self) -> None: ...


class DeviceQueue:
    def __init__(self, device: Device, on_end: Callable[[Part], None]) -> None:
        self._device = device
        self._on_end = on_end
        self._added = asyncio.Event()
        self.parts: deque[Part] = deque()  # unfinished; the first one runs
        self.first_since = 0.0  # when the first one began, by time.monotonic()

    def add(self, part: Part) -> None:
        if not self.parts:
            self.first_since = time.monotonic()
        insort(self.parts, part, lo=min(1, len(self.parts)), key=lambda each: each.turn)
        self._added.set()

    async def serve(self) -> None:
        while True:
            while not self.parts:
                self._added.clear()
                await self._added.wait()
            part = self.parts[0]
            self.first_since = time.monotonic()
            part.measured = await self._device.run(part.work)
            self.parts.popleft()
            self._on_end(part)
