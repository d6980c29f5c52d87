"""Which faults there are, and when they come: a schedule depends on its seed alone."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# What happens to a process.
KILL, FREEZE, RESTART = "kill", "freeze", "restart"
PROCESS_FAULTS = (KILL, FREEZE, RESTART)

# What happens around the processes, and to which.
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
    ERRORS: (60.0, 60.0),
    REFUSED: (5.0, 30.0),
    SLOW: (5.0, 20.0),
}
TOGETHER = 0.25  # how often a fault comes at the same time as the one before it
QUIET_SECONDS = 20.0  # before and after a fault that comes alone, so that its recovery is measured
ALONE_SECONDS = 50.0  # of a round for each of those, so that time is left for the others


@dataclass(frozen=True, slots=True)
class Fault:
    at: float  # seconds after the round began
    kind: str
    target: str
    seconds: float = 0.0

    def __str__(self) -> str:
        lasts = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.kind} {self.target}{lasts}"

    @property
    def group(self) -> str:
        return group(self.kind, self.target)


def group(kind: str, target: str) -> str:
    """The kind and its target, with all workers and replicas counted as one."""
    return f"{kind} {target.partition('-')[0]}"


def possible_faults(processes: Sequence[str], *, disk: bool) -> list[tuple[str, str]]:
    """Every fault with every target it may have."""
    faults = [(kind, target) for kind in PROCESS_FAULTS for target in sorted(processes)]
    return faults + [pair for pair in SURROUNDINGS if disk or pair[0] != FULL_DISK]


def faults_alone(
    seed: int, faults: Sequence[tuple[str, str]], rounds: int, seconds: float, early: Sequence[str]
) -> list[list[str]]:
    """For each round the groups that come alone in it: each group once, if the rounds are long.

    Those with a target in `early` come in the first rounds.
    """
    deck = sorted({group(*fault) for fault in faults})
    random.Random(seed).shuffle(deck)
    deck.sort(key=lambda name: name.split()[-1] not in early)
    each = math.ceil(len(deck) / rounds)
    shares = [deck[number * each : (number + 1) * each] for number in range(rounds)]
    return [share[: int(seconds / ALONE_SECONDS)] for share in shares]


def schedule(
    seed: int,
    faults: Sequence[tuple[str, str]],
    *,
    alone: Sequence[str] = (),
    pause: tuple[float, float] = (2.0, 10.0),
) -> Iterator[Fault]:
    """First the groups that come alone, then all faults in random order, without end."""
    chance = random.Random(seed)
    at = QUIET_SECONDS if alone else 0.0
    for name in alone:
        kind, target = chance.choice([fault for fault in faults if group(*fault) == name])
        seconds = _lasts(kind, chance)
        yield Fault(round(at, 3), kind, target, seconds)
        at += seconds + QUIET_SECONDS
    while True:
        deck = list(faults)
        chance.shuffle(deck)
        for kind, target in deck:
            if chance.random() >= TOGETHER:
                at += chance.uniform(*pause)
            yield Fault(round(at, 3), kind, target, _lasts(kind, chance))


def _lasts(kind: str, chance: random.Random) -> float:
    return round(chance.uniform(*LASTS[kind]), 3) if kind in LASTS else 0.0
