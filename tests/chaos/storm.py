"""Storms over a running arena: a run is streamed, things go wrong, then the checker looks."""

from __future__ import annotations

import asyncio
import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.arena import StormyArena
from tests.chaos.checker import check
from tests.chaos.faults import Fault
from tests.chaos.findings import Findings
from tests.chaos.striking import Striker, Struck
from tests.e2e.arena import QUICK, RULES

Say = Callable[[str], None]

EVERYBODY = (*RULES, "hybrid_ml", "rl_agent")
STORM_SECONDS = 300.0  # about; a run and its check
# After the last fault: until everything is sent, decided, simulated and stored.
COMPLETE_SECONDS = 600.0


@dataclass(slots=True)
class Log:
    """What came of it all."""

    seed: int
    storms: int = 0
    struck: list[Struck] = field(default_factory=list)
    findings: list[Findings] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    restarts: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems and all(found.ok for found in self.findings)

    def summary(self) -> dict[str, Any]:
        measured = defaultdict(list)
        for struck in self.struck:
            if struck.recovery is not None:
                measured[struck.fault.group].append(struck)
        told = [problem for found in self.findings for problem in found.problems]
        return {
            "seed": self.seed,
            "ok": self.ok,
            "storms": self.storms,
            "tasks": sum(found.tasks for found in self.findings),
            "results_checked": sum(found.results for found in self.findings),
            "lost": sum(found.lost for found in self.findings),
            "doubled": sum(found.doubled for found in self.findings),
            "different": sum(found.different for found in self.findings),
            "copies_not_merged_yet": sum(found.copies for found in self.findings),
            "faults": len(self.struck),
            "faults_by_kind": dict(Counter(s.fault.group for s in self.struck).most_common()),
            "recovery_s": {group: _spread(found) for group, found in sorted(measured.items())},
            "recovery_not_measured": sum(s.recovery is None for s in self.struck),
            "restarts": dict(self.restarts),
            "left_out": self.left_out,
            "problems": self.problems + told,
        }


def _spread(measured: list[Struck]) -> dict[str, float | None]:
    """Recovery from faults that struck alone, and the longest while others struck as well."""
    alone = [s.recovery for s in measured if s.alone and s.recovery is not None]
    others = [s.recovery for s in measured if not s.alone and s.recovery is not None]
    return {
        "count": len(alone),
        "p50": round(statistics.median(alone), 2) if alone else None,
        "max": round(max(alone), 2) if alone else None,
        "max_among_others": round(max(others), 2) if others else None,
    }


@dataclass(frozen=True, slots=True)
class Plan:
    """So many storms, each over a run of so many tasks that takes about so long."""

    storms: int
    tasks: int
    seconds: float
    seed: int

    @classmethod
    def of(cls, minutes: float, tasks: int, seed: int) -> Plan:
        storms = max(1, round(minutes * 60 / STORM_SECONDS))
        return cls(storms, math.ceil(tasks / storms), minutes * 60 / storms, seed)

    def spec(self) -> dict[str, Any]:
        """What all runs have in common: rules must give the same results in each."""
        return {
            "tasks": self.tasks,
            "seed": self.seed,
            "workload": {"dependencies": {"probability": 0.2}},
            "learning": QUICK,
        }


async def undisturbed(arena: StormyArena, plan: Plan, say: Say) -> str:
    """The run that others are compared with."""
    run = await arena.start_run({**plan.spec(), "pace": "max", "schedulers": RULES})
    say(f"run {run}: {plan.tasks:,} tasks, undisturbed")
    await arena.complete(run, COMPLETE_SECONDS)
    return run


async def storm(
    arena: StormyArena,
    plan: Plan,
    schedule: Iterator[Fault],
    reference: str,
    log: Log,
    say: Say,
) -> None:
    """One storm: what it did and what the checker found goes into the log."""
    pace = max(plan.tasks / plan.seconds, 1.0)
    run = await arena.start_run({**plan.spec(), "pace": pace, "schedulers": EVERYBODY})
    say(f"run {run}: {plan.tasks:,} tasks at {pace:,.0f}/s, all schedulers, learning")
    striker = Striker(arena, run, say)
    log.storms += 1
    before = arena.restarts
    try:
        await striker.storm(schedule, plan.seconds)
        say("the storm is over; waiting for the run")
        watch = asyncio.create_task(striker.settle(COMPLETE_SECONDS))
        await arena.complete(run, COMPLETE_SECONDS)
        watch.cancel()
        began = time.monotonic()
        found = await asyncio.to_thread(check, arena.tables, run, reference=reference, rules=RULES)
        log.findings.append(found)
        verdict = "all is well" if found.ok else "WRONG"
        say(f"{found.results:,} results checked in {time.monotonic() - began:.1f} s: {verdict}")
        for problem in found.problems:
            say(f"  {problem}")
    finally:
        log.struck += striker.struck
        log.problems += striker.problems
        log.restarts += arena.restarts - before
