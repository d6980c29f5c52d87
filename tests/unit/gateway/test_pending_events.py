"""Events between two updates of a live feed."""

from __future__ import annotations

from services.gateway.live.pending_events import KEPT_GROUPS, PendingEvents
from shared.messages.events import Event, kinds_from, level_of


def failed(batch: int, run: str = "r1") -> Event:
    message = f"own cannot decide batch {batch}: PolicyError('got 1.7')"
    return Event(kind="policy_failed", service="scheduler", run=run, message=message)


def model(learner: str, version: int) -> Event:
    message = f"{learner} version {version} shipped: not worse: 0.{version} against 0.5"
    return Event(kind="model", service="trainer", run="r1", message=message)


def test_events_that_say_the_same_again_are_one_with_a_count() -> None:
    pending = PendingEvents()
    events = [failed(1), model("hybrid_ml", 1), failed(2), model("bandit", 1), failed(1, "r2")]
    for event in [*events, model("hybrid_ml", 2)]:
        pending.add(event)
    taken = [(event.message.split(":")[0], event.run, n) for event, n in pending.take(10)]
    assert taken == [
        ("own cannot decide batch 2", "r1", 2),
        ("bandit version 1 shipped", "r1", 1),
        ("own cannot decide batch 1", "r2", 1),
        ("hybrid_ml version 2 shipped", "r1", 2),
    ]
    assert pending.take(10) == []


def test_a_client_gets_a_few_at_a_time_and_a_flood_drops_the_oldest() -> None:
    pending = PendingEvents()
    for number in range(KEPT_GROUPS + 5):
        pending.add(failed(1, f"r{number}"))
    assert [event.run for event, _ in pending.take(2)] == ["r5", "r6"]
    assert len(pending.take(1000)) == KEPT_GROUPS - 2


def test_levels() -> None:
    assert [level_of(kind) for kind in ("run", "left_out", "suspended")] == [
        "info",
        "warning",
        "problem",
    ]
    assert kinds_from("info") is None
    assert "model_refused" in (kinds_from("warning") or [])
    assert "model_refused" not in (kinds_from("problem") or [])
