"""What is reported of the rounds."""

from __future__ import annotations

from tests.chaos.fault_injection import Injected
from tests.chaos.faults import Fault
from tests.chaos.findings import Findings
from tests.chaos.rounds import Log, Plan


def injected(target: str, recovery: float | None, *, alone: bool = True) -> Injected:
    return Injected(Fault(0, "kill", target), measured=True, alone=alone, recovery=recovery)


def test_recovery_is_reported_by_kind_of_fault_with_all_workers_as_one() -> None:
    log = Log(seed=1, rounds=1)
    log.faults = [
        injected("scheduler-greedy", 1.0),
        injected("scheduler-oracle", 2.0),
        injected("scheduler-random", 9.0),
        injected("scheduler-random", 30.0, alone=False),
        injected("nats", 4.0),
        injected("nats", None),
    ]
    summary = log.summary()
    assert summary["recovery_s"] == {
        "kill nats": {"count": 1, "p50": 4.0, "max": 4.0, "max_among_others": None},
        "kill scheduler": {"count": 3, "p50": 2.0, "max": 9.0, "max_among_others": 30.0},
    }
    assert summary["faults_by_kind"] == {"kill scheduler": 4, "kill nats": 2}
    assert (summary["faults"], summary["recovery_not_measured"]) == (6, 1)


def test_one_wrong_row_or_one_problem_is_a_failure() -> None:
    log = Log(seed=1)
    log.findings = [Findings("a", tasks=5, results=40), Findings("b", tasks=5, results=40)]
    assert log.ok
    log.findings[1].add_lost("greedy", "no row of tasks 3")
    assert not log.ok
    summary = log.summary()
    assert (summary["tasks"], summary["results_checked"], summary["lost"]) == (10, 80, 1)
    assert summary["problems"] == ["lost: greedy: no row of tasks 3"]
    hanging = Log(seed=1, problems=["nats does not stop within 60 s"])
    assert not hanging.ok


def test_minutes_and_tasks_are_divided_among_rounds() -> None:
    plan = Plan.of(minutes=30, tasks=1_000_000, seed=3)
    assert (plan.rounds, plan.tasks, plan.seconds) == (6, 166_667, 300)
    short = Plan.of(minutes=1, tasks=100, seed=3)
    assert (short.rounds, short.tasks, short.seconds) == (1, 100, 60)
