"""What a scheduler may know of its own cluster: when its finished tasks ended, and for the others
its own estimates.

The devices are kept as if every unfinished part took as long as the scheduler estimated:
`expected`. When the first part of a queue really ends, the difference to its expected end becomes
the delay of all parts behind it: `late`. A part that should have ended already, and has not, is
expected to end now. With exact estimates `expected` is the virtual cluster itself, to the last bit.

Real ends are stored to know when to show them, and are never shown before.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from shared.domain.cluster.virtual_cluster import Cluster, pack, unpack

# Unfinished parts that are stored one by one for a device; of more, neighbours become one entry.
# The limit for all devices together keeps messages small.
MOST_PARTS = 128
MOST_PARTS_OF_ALL = 65_536

# When it should end by `expected`, when it really ends, and how many parts it stands for.
Part = tuple[float, float, int]


@dataclass(slots=True)
class Observation:
    expected: Cluster
    late: dict[int, float] = field(default_factory=dict)  # of devices that are not idle
    parts: dict[int, list[Part]] = field(default_factory=dict)  # unfinished ones of each device
    most_parts: int = field(init=False)

    def __post_init__(self) -> None:
        self.most_parts = min(MOST_PARTS, max(MOST_PARTS_OF_ALL // len(self.expected.free), 2))

    def copy(self) -> Observation:
        parts = {device: list(parts) for device, parts in self.parts.items()}
        return Observation(self.expected.copy(), dict(self.late), parts)

    def add(self, device: int, expected_end: float, real_end: float) -> bool:
        """A part was given to the device; returns whether it is the next one to end there."""
        part = (expected_end, real_end, 1)
        parts = self.parts.get(device)
        if parts is None:
            self.parts[device] = [part]
            return True
        if expected_end < parts[-1][0]:  # it fits into a gap before others
            insort(parts, part)
            return parts[0] is part
        parts.append(part)
        if len(parts) > self.most_parts:
            self.shorten(parts)
        return False

    def shorten(self, parts: list[Part]) -> None:
        """Join neighbouring parts, but not the first one, of a device that has more than it can
        remember."""
        parts[1:] = _joined(parts[1:])

    def finish_parts(self, device: int, now: float) -> float | None:
        """Take note of what has ended on the device by now. Returns when the next part really
        ends; None: the device is idle."""
        parts = self.parts.get(device)
        if parts is None:
            return None
        if len(parts) == 1 and parts[0][1] <= now:
            self._make_idle(device, parts[0][1])
            return None
        ended = 0
        while ended < len(parts) and parts[ended][1] <= now:
            ended += 1
        if ended == 0:
            return parts[0][1]
        expected_end, real_end, _ = parts[ended - 1]
        if ended == len(parts):
            self._make_idle(device, real_end)
            return None
        del parts[:ended]
        self.late[device] = real_end - expected_end
        return parts[0][1]

    def _make_idle(self, device: int, since: float) -> None:
        del self.parts[device]
        if self.late:
            self.late.pop(device, None)
        if self.expected.gaps:
            self.expected.gaps.pop(device, None)
        self.expected.free[device] = since

    def delay(self, device: int, now: float) -> float:
        """How much later than in `expected` the queue of a device runs."""
        parts = self.parts.get(device)
        if parts is None:
            return 0.0
        return max(self.late.get(device, 0.0), now - parts[0][0])

    def waiting(self, device: int) -> int:
        """Parts on the device that have not started, as far as is known: all but the first."""
        return max(sum(part[2] for part in self.parts.get(device, ())) - 1, 0)

    def to_json(self) -> dict[str, Any]:
        parts = [(device, *part) for device in sorted(self.parts) for part in self.parts[device]]
        return {
            "expected": self.expected.to_json(),
            "late": _columns(sorted(self.late.items())),
            "parts": _columns(parts),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Observation:
        late = {int(device): delay for device, delay in _rows(data["late"])}
        parts: dict[int, list[Part]] = {}
        for device, expected_end, real_end, count in _rows(data["parts"]):
            parts.setdefault(int(device), []).append((expected_end, real_end, int(count)))
        return cls(Cluster.from_json(data["expected"]), late, parts)


def _joined(parts: list[Part]) -> list[Part]:
    """Every two neighbours as one."""
    pairs = [
        (later[0], later[1], earlier[2] + later[2])
        for earlier, later in zip(parts[::2], parts[1::2], strict=False)
    ]
    return pairs + parts[2 * len(pairs) :]


def _columns(rows: Iterable[tuple[float, ...]]) -> list[str]:
    return [pack(column) for column in zip(*rows, strict=True)]


def _rows(columns: list[str]) -> Iterable[tuple[float, ...]]:
    return zip(*map(unpack, columns), strict=True)
