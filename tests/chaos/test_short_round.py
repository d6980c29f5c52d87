"""One short round in which everything is killed; `make chaos` has the long ones."""

from __future__ import annotations

from pathlib import Path

from shared.domain.schedulers import BUILT_IN
from tests.chaos.arena import chaos_arena
from tests.chaos.faults import CUT, ERRORS, FREEZE, KILL, Fault
from tests.chaos.rounds import Log, Plan, run_round, undisturbed
from tests.leaks import files_with_secrets

KILLED = (
    "nats",
    "clickhouse",
    "generator",
    "simulator",
    "recorder",
    "trainer",
    "gateway",
    "scheduler-greedy",
    "scheduler-rl_agent",
)
PLAN = Plan(rounds=1, tasks=3000, seconds=20, seed=17)


def faults() -> list[Fault]:
    """Everything is killed, one after the other or two at once; then a bad network."""
    killed = [
        Fault(1.5 * (number - number % 3 // 2), KILL, name) for number, name in enumerate(KILLED)
    ]
    last = killed[-1].at
    return [
        *killed,
        Fault(last + 2, CUT, "nats"),
        Fault(last + 2, FREEZE, "recorder", 2),
        Fault(last + 3, ERRORS, "clickhouse", 2),
    ]


async def test_nothing_is_lost_doubled_or_different_when_everything_is_killed(
    tmp_path: Path,
) -> None:
    log = Log(PLAN.seed)
    async with chaos_arena(tmp_path / "data", BUILT_IN) as arena:
        reference = await undisturbed(arena, PLAN, print)
        await run_round(arena, PLAN, iter(faults()), reference, log, print)
    summary = log.summary()
    assert summary["problems"] == []
    assert (summary["lost"], summary["doubled"], summary["different"]) == (0, 0, 0)
    assert summary["tasks"] == PLAN.tasks
    assert summary["results_checked"] == PLAN.tasks * len(BUILT_IN)
    assert set(summary["restarts"]) >= set(KILLED)
    assert files_with_secrets(tmp_path / "data") == []
