"""Simulated annealing over instances, after PISA (Coleman and Krishnamachari, 2024): find where a
scheduler loses most to another, then shrink the instance.

Each pair of a victim and a rival has a chain of its own, but every evaluation counts for all pairs.
Schedulers that take long, such as learners that have to be pre-trained for every instance, are only
run on instances that look promising, for about half of the time.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from services.lab.adversary.space import Point, Space
from shared.domain.spec import RunSpec
from shared.messages.standing import Standing

Evaluate = Callable[[RunSpec, str], Standing]  # a run of one scheduler
Measure = Callable[[Standing], float]
Pair = tuple[str, str]  # victim, rival

MEASURES: dict[str, Measure] = {
    "turnaround": lambda standing: standing.total_turnaround / standing.tasks,
    "makespan": lambda standing: standing.makespan,
    "energy": lambda standing: standing.total_energy / standing.tasks,
    "cost": lambda standing: standing.total_cost / standing.tasks,
}
# Temperatures of the first and the last step, in logarithms of the ratio.
HOT, COLD = 0.5, 0.02
# The share of the time for shrinking, and of the loss over 1 that a shrunk instance still has.
SHRINK_SHARE, KEPT = 0.2, 0.9
# A scheduler whose run takes longer is run on promising instances only.
SLOW_SECONDS = 0.5


@dataclass(slots=True)
class Instance:
    point: Point
    values: dict[str, float] = field(default_factory=dict)  # of the measure, by scheduler

    def ratio(self, pair: Pair) -> float:
        victim, rival = (self.values.get(name, math.nan) for name in pair)
        return victim / rival if rival > 0 else math.nan


@dataclass(slots=True)
class SearchResult:
    """The worst instance of each pair."""

    best: dict[Pair, Instance] = field(default_factory=dict)
    evaluations: dict[str, int] = field(default_factory=dict)
    shrunk: set[Pair] = field(default_factory=set)
    seconds: float = 0.0

    def ratio(self, pair: Pair) -> float | None:
        return self.best[pair].ratio(pair) if pair in self.best else None


class Search:
    def __init__(
        self,
        space: Space,
        names: tuple[str, ...],
        evaluate: Evaluate,
        measure: str,
        seed: int,
        report: Callable[[float, str], None] = lambda share, text: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._space, self._names, self._evaluate = space, names, evaluate
        self._measure, self._draw = MEASURES[measure], random.Random(seed)
        self._report, self._clock = report, clock
        self._seconds = dict.fromkeys(names, 0.0)  # spent on each
        self._quickest: dict[str, float] = {}  # the first run of each also imports its code
        self._current: dict[Pair, Instance] = {}
        self.result = SearchResult(evaluations=dict.fromkeys(names, 0))

    def run(self, pairs: list[Pair], seconds: float) -> SearchResult:
        """Anneal the chains of these pairs in turn, then shrink the worst instances."""
        started = self._clock()
        anneal_until = started + (1 - SHRINK_SHARE) * seconds
        self._random_start()
        step = 0
        while (now := self._clock()) < anneal_until:
            share = (now - started) / (anneal_until - started)
            self._step(pairs[step % len(pairs)], HOT * (COLD / HOT) ** share)
            step += 1
            self._report(share * (1 - SHRINK_SHARE), f"{step:,} instances")
        worst = sorted(pairs, key=lambda pair: -(self.result.ratio(pair) or 0.0))
        for number, pair in enumerate(worst):
            self._report(1 - SHRINK_SHARE * (1 - number / len(pairs)), "shrinking")
            if pair in self.result.best and not self._shrink(pair, started + seconds):
                break
        self.result.seconds = self._clock() - started
        return self.result

    def _random_start(self) -> None:
        """Run every scheduler once; again if it was slow, since imports may be the reason."""
        instance = self._run(self._space.random_point(self._draw), self._names)
        spec = self._space.spec_of(instance.point)
        for name in self._names:
            if SLOW_SECONDS < self._quickest[name] < 10 * SLOW_SECONDS:
                self._value(spec, name)
        self._improve(instance)

    def _slow(self, name: str) -> bool:
        return self._quickest.get(name, 0.0) > SLOW_SECONDS

    def _step(self, pair: Pair, temperature: float) -> None:
        current = self._current.get(pair) or self.result.best.get(pair)
        point = (
            self._space.neighbour(current.point, self._draw)
            if current
            else self._space.random_point(self._draw)
        )
        slow = {name for name in self._names if self._slow(name)}
        names = tuple(name for name in self._names if name not in slow)
        # Slow schedulers of this pair are run while all slow ones together used at most half the
        # time.
        spent = sum(self._seconds.values())
        slow_may_run = sum(self._seconds[name] for name in slow) <= 0.5 * spent or not names
        if slow_may_run or len(self._names) == 2:
            names += tuple(name for name in pair if name in slow)
        proposed = self._run(point, names)
        self._improve(proposed)
        before = current.ratio(pair) if current else math.nan
        after = proposed.ratio(pair)
        if math.isnan(after):
            return
        gain = math.log(after / before) if before > 0 else math.inf
        if gain >= 0 or self._draw.random() < math.exp(gain / temperature):
            self._current[pair] = proposed

    def _run(self, point: Point, names: tuple[str, ...]) -> Instance:
        instance, spec = Instance(point), self._space.spec_of(point)
        for name in names:
            instance.values[name] = self._value(spec, name)
        return instance

    def _value(self, spec: RunSpec, name: str) -> float:
        started = self._clock()
        value = self._measure(self._evaluate(spec, name))
        taken = self._clock() - started
        self._seconds[name] += taken
        self._quickest[name] = min(taken, self._quickest.get(name, math.inf))
        self.result.evaluations[name] += 1
        return value

    def _improve(self, instance: Instance) -> None:
        for victim in instance.values:
            for rival in instance.values:
                pair = victim, rival
                known = self.result.ratio(pair)
                if victim != rival and instance.ratio(pair) > (known or 0.0):
                    self.result.best[pair] = instance

    def _shrink(self, pair: Pair, until: float) -> bool:
        """Make the instance of a pair as simple as possible; False: the time is over."""
        instance = self.result.best[pair]
        enough = 1 + KEPT * (instance.ratio(pair) - 1)
        if instance.ratio(pair) <= 1:
            return True
        shrunk = True
        while shrunk:
            shrunk = False
            for point in self._space.smaller(instance.point):
                if self._clock() > until:
                    self._keep(pair, instance)
                    return False
                simpler = self._run(point, pair)
                if simpler.ratio(pair) >= enough:
                    instance, shrunk = simpler, True
                    break
        self._keep(pair, instance)
        self.result.shrunk.add(pair)
        return True

    def _keep(self, pair: Pair, instance: Instance) -> None:
        self.result.best[pair] = instance
