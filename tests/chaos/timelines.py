"""The insertion rule on each device, as the checker follows it. No code of the product."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field

# Idle times that a device remembers, and that all of them together remember; of more, the device
# forgets its shortest one.
MOST_IDLE = 128
MOST_IDLE_OF_ALL = 65_536


@dataclass(slots=True)
class Timeline:
    """When one device is idle: between its parts, and after the last one."""

    most: int
    end: float = 0.0
    idle: list[tuple[float, float]] = field(default_factory=list)

    def start(self, ready: float, length: float, clock: float) -> float:
        """The earliest that a part of this length can start. Idle times that ended before the
        latest arrival are past."""
        for begin, end in self.idle:
            if end > clock and max(begin, ready) + length <= end:
                return max(begin, ready)
        return max(self.end, ready)

    def occupy(self, start: float, length: float, clock: float) -> None:
        self.idle = [idle for idle in self.idle if idle[1] > clock]
        if start >= self.end:
            if self.end < start and start > clock:
                self.idle.append((self.end, start))
            self.end = start + length
        else:
            around = next(
                idle for idle in self.idle if idle[0] <= start and start + length <= idle[1]
            )
            self.idle.remove(around)
            for rest in ((around[0], start), (start + length, around[1])):
                if rest[0] < rest[1]:
                    insort(self.idle, rest)
        if len(self.idle) > self.most:
            self.idle.remove(min(self.idle, key=lambda idle: idle[1] - idle[0]))


def timelines(devices: int) -> list[Timeline]:
    most = min(MOST_IDLE, max(MOST_IDLE_OF_ALL // devices, 1))
    return [Timeline(most) for _ in range(devices)]


def place(gang: list[Timeline], ready: float, length: float, clock: float) -> float:
    """Give all of these devices a part at the same time; returns when it starts."""
    start = ready
    while (latest := max(each.start(start, length, clock) for each in gang)) > start:
        start = latest
    for each in gang:
        each.occupy(start, length, clock)
    return start
