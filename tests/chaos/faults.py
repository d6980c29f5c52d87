"""What may go wrong, and when: a schedule of faults is a function of its seed alone."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# What happens to a process.
KILL, FREEZE, RESTART = "kill", "freeze", "restart"
PROCESS_FAULTS = (KILL, FREEZE, RESTART)

# What happens around the processes, and to whom.
FULL_DISK, ERRORS, REFUSED, SLOW, CUT = "full disk", "errors", "refused", "slow", "cut"
SURROUNDINGS = (
    (FULL_DISK, "clickhouse"),
    (ERRORS, "clickhouse"),
    (REFUSED, "clickhouse"),
    (SLOW, "clickhouse"),
    (CUT, "clickhouse"),
    (SLOW, "nats"),
    (CUT, "nats"),
)

# How long each lasts, in seconds, at least and at most; what is not here takes a moment.
LASTS = {
    FREEZE: (1.0, 12.0),
    FULL_DISK: (5.0, 15.0),
    ERRORS: (20.0, 60.0),
    REFUSED: (5.0, 30.0),
    SLOW: (5.0, 20.0),
}
TOGETHER = 0.25  # how often a fault comes at the same time as the one before it
ALONE = 0.25  # how often one has the arena for itself, so that its recovery can be measured
QUIET_SECONDS = 20.0  # before and after it


@dataclass(frozen=True, slots=True)
class Fault:
    at: float  # seconds after the storm began
    kind: str
    target: str
    seconds: float = 0.0

    def __str__(self) -> str:
        lasts = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.kind} {self.target}{lasts}"

    @property
    def group(self) -> str:
        """The kind, with all workers counted as one."""
        return f"{self.kind} {self.target.partition('-')[0]}"


def possible(processes: Sequence[str], *, disk: bool) -> list[tuple[str, str]]:
    """Every fault with every target it may have."""
    faults = [(kind, target) for kind in PROCESS_FAULTS for target in sorted(processes)]
    return faults + [pair for pair in SURROUNDINGS if disk or pair[0] != FULL_DISK]


def schedule(
    seed: int, faults: Sequence[tuple[str, str]], *, pause: tuple[float, float] = (2.0, 10.0)
) -> Iterator[Fault]:
    """Without end: all faults in random order, then all again in another one."""
    chance = random.Random(seed)
    at = quiet_until = 0.0
    while True:
        deck = list(faults)
        chance.shuffle(deck)
        for kind, target in deck:
            seconds = chance.uniform(*LASTS[kind]) if kind in LASTS else 0.0
            luck = chance.random()
            if luck >= TOGETHER:
                at += chance.uniform(*pause)
            alone = luck >= 1 - ALONE
            at = max(at + (QUIET_SECONDS if alone else 0.0), quiet_until)
            quiet_until = at + seconds + QUIET_SECONDS if alone else 0.0
            yield Fault(round(at, 3), kind, target, round(seconds, 3))
