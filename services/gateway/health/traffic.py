"""Lag of every consumer and number of dead letters, read from NATS once a second at most."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.gateway.http.response_cache import CACHED_SECONDS, ResponseCache
from shared.bus.client import Bus
from shared.bus.dead_letters import DeadLetterQueue
from shared.messages import subjects

# The streams with durable consumers, and their names in `lag`.
STREAMS = {
    subjects.TASKS: "tasks",
    subjects.DECISIONS: "decisions",
    subjects.RESULTS: "results",
    subjects.EVENTS: "events",
    subjects.RUNS_STREAM: "runs",
}
SERVICES = (
    "executor",
    "gateway",
    "generator",
    "recorder",
    "scheduler",
    "simulator",
    "trainer",
)
OTHERS = "others"


@dataclass(frozen=True, slots=True)
class Traffic:
    lag: dict[str, int] = field(default_factory=dict)  # unprocessed messages by stream/consumer
    dead_letters: dict[str, int] = field(default_factory=dict)  # by service


class BusTraffic:
    def __init__(self, bus: Bus, seconds: float = CACHED_SECONDS) -> None:
        self._bus = bus
        self._cache = ResponseCache(seconds)

    async def read(self) -> Traffic:
        return await self._cache.get("traffic", self._read)

    async def _read(self) -> Traffic:
        return Traffic(await self.lag(), await self.dead_letters())

    async def lag(self) -> dict[str, int]:
        lag = {}
        for stream, name in STREAMS.items():
            for info in await self._bus.jetstream.consumers_info(stream):
                if info.config.durable_name:
                    pending = (info.num_pending or 0) + (info.num_ack_pending or 0)
                    lag[f"{name}/{info.name}"] = pending
        return lag

    async def dead_letters(self) -> dict[str, int]:
        """Dead letters by service; services that are not part of the arena count as one."""
        counts = dict.fromkeys((*SERVICES, OTHERS), 0)
        for service, letters in (await DeadLetterQueue(self._bus).counts()).items():
            counts[service if service in SERVICES else OTHERS] += letters
        return counts
