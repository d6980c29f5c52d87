"""Rounds of a chaos test: a run, faults meanwhile, then a check of every stored row."""

from __future__ import annotations

import asyncio
import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from shared.domain.schedulers import BUILT_IN
from tests.chaos.arena import ChaosArena
from tests.chaos.checker import check
from tests.chaos.fault_injection import FaultInjector, Injected
from tests.chaos.faults import Fault
from tests.chaos.findings import Findings
from tests.e2e.arena import QUICK, RULES

Say = Callable[[str], None]  # prints progress

ROUND_SECONDS = 300.0  # about; a run and its check
# After the last fault: until everything is sent, decided, simulated and stored.
COMPLETE_SECONDS = 600.0


@dataclass(slots=True)
class Log:
    """The outcome of all rounds."""

    seed: int
    rounds: int = 0
    faults: list[Injected] = field(default_factory=list)
    findings: list[Findings] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    restarts: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems and all(found.ok for found in self.findings)

    def summary(self) -> dict[str, Any]:
        measured = defaultdict(list)
        for injected in self.faults:
            if injected.recovery is not None:
                measured[injected.fault.group].append(injected)
        found_problems = [each for found in self.findings for each in found.problems]
        return {
            "seed": self.seed,
            "ok": self.ok,
            "rounds": self.rounds,
            "tasks": sum(found.tasks for found in self.findings),
            "results_checked": sum(found.results for found in self.findings),
            "lost": sum(found.lost for found in self.findings),
            "doubled": sum(found.doubled for found in self.findings),
            "different": sum(found.different for found in self.findings),
            "copies_not_merged_yet": sum(found.copies for found in self.findings),
            "faults": len(self.faults),
            "faults_by_kind": dict(Counter(s.fault.group for s in self.faults).most_common()),
            "recovery_s": {group: _spread(found) for group, found in sorted(measured.items())},
            "recovery_not_measured": sum(s.recovery is None for s in self.faults),
            "restarts": dict(self.restarts),
            "left_out": self.left_out,
            "problems": self.problems + found_problems,
        }


def _spread(measured: list[Injected]) -> dict[str, float | None]:
    """Recovery from faults that came alone, and the longest while there were others."""
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
    """Rounds of one run each, of that many tasks in about that many seconds."""

    rounds: int
    tasks: int
    seconds: float
    seed: int

    @classmethod
    def of(cls, minutes: float, tasks: int, seed: int) -> Plan:
        rounds = max(1, round(minutes * 60 / ROUND_SECONDS))
        return cls(rounds, math.ceil(tasks / rounds), minutes * 60 / rounds, seed)

    def spec(self) -> dict[str, Any]:
        """The same in all runs: the rules must give the same results in each."""
        return {
            "tasks": self.tasks,
            "seed": self.seed,
            "workload": {"dependencies": {"probability": 0.2}},
            "learning": QUICK,
        }


async def undisturbed(arena: ChaosArena, plan: Plan, say: Say) -> str:
    """The run that the others are compared with."""
    run = await arena.start_run({**plan.spec(), "pace": "max", "schedulers": RULES})
    say(f"run {run}: {plan.tasks:,} tasks, undisturbed")
    await arena.complete(run, COMPLETE_SECONDS)
    return run


async def run_round(
    arena: ChaosArena, plan: Plan, schedule: Iterator[Fault], reference: str, log: Log, say: Say
) -> None:
    """Faults and findings of one round go into the log."""
    pace = max(plan.tasks / plan.seconds, 1.0)
    run = await arena.start_run({**plan.spec(), "pace": pace, "schedulers": BUILT_IN})
    say(f"run {run}: {plan.tasks:,} tasks at {pace:,.0f}/s, all schedulers, learning")
    injector = FaultInjector(arena, run, say)
    log.rounds += 1
    before = arena.restarts
    try:
        await injector.inject(schedule, plan.seconds)
        say("no more faults; waiting for the run to complete")
        watch = asyncio.create_task(injector.await_recovery(COMPLETE_SECONDS))
        await arena.complete(run, COMPLETE_SECONDS)
        watch.cancel()
        began = time.monotonic()
        found = await asyncio.to_thread(check, arena.tables, run, reference=reference, rules=RULES)
        log.findings.append(found)
        verdict = "all correct" if found.ok else "WRONG"
        say(f"{found.results:,} results checked in {time.monotonic() - began:.1f} s: {verdict}")
        for problem in found.problems:
            say(f"  {problem}")
    finally:
        log.faults += injector.faults
        log.problems += injector.problems
        log.restarts += arena.restarts - before
