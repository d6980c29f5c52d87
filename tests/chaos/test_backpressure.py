"""A service that stops or is slow fills the streams up to their limits, and nothing else happens.

The generator waits, no stream and no process grows beyond bounds, a slow scheduler does not hold
the others back, and when all is well again the run ends as if nothing had been.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import nats
import pytest
from nats.js.api import StreamState

from deploy.local.arena import find
from services.cli.experiments.peak_memory import peak_mb
from services.cli.settings import settings_of
from shared.messages import subjects
from shared.runtime.settings import MEGABYTE
from tests.bench.processes import processes
from tests.e2e.arena import RULES, ArenaProcess
from tests.waiting import PATIENCE

pytestmark = pytest.mark.long

BATCH = 2000
TASKS = 40 * BATCH
SPEC = {
    "tasks": TASKS,
    "pace": "max",
    "seed": 23,
    "workload": {"dependencies": {"probability": 0.1}},
}
# Room for about 20 batches in each: 60 to 100 bytes a task, 180 and more for a result.
LIMITS = {"TASKS": 2 * MEGABYTE, "DECISIONS": 16 * MEGABYTE, "RESULTS": 48 * MEGABYTE}
# Messages that the recorder stores with one insert: few, so that its memory hardly depends on how
# many happened to come together.
GROUP = 8
# While a service waits it may take more than it ever took in runs that went well by what a group
# needs (as messages, as a table and as the body of the insert) and by what allocators keep. That
# follows the width of the rows; a service that keeps what it has read takes many times that.
COPIES, SLACK = 3, 8 * MEGABYTE
SERVERS, SERVER_GROWTH = ("nats", "clickhouse"), 150 * MEGABYTE

# Hundreds of times slower than any of the rules, which take milliseconds for a batch, until it is
# switched to quick.
SLOW = """
import time
from pathlib import Path

from services.scheduler.policies.greedy import Greedy


class Slow(Greedy):
    name = "slow"

    def decide(self, tasks, spec):
        for _ in range(50):
            if Path(__file__).with_name("quick").exists():
                break
            time.sleep(0.1)
        return super().decide(tasks, spec)
"""


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArenaProcess]:
    folder = tmp_path_factory.mktemp("narrow")
    policy = folder / "slow.py"
    policy.write_text(SLOW)
    with pytest.MonkeyPatch.context() as patch:
        for stream, limit in LIMITS.items():
            patch.setenv(f"HYBRID_{stream}_MAX_BYTES", str(limit))
        patch.setenv("HYBRID_RECORD_MESSAGES", str(GROUP))
        started = ArenaProcess(folder / "data", "--idle", "--add", str(policy))
    yield started
    assert started.stop() == 0


@pytest.fixture(scope="module")
def reference(arena: ArenaProcess) -> str:
    run = arena.start_run(**SPEC)
    arena.complete(run)
    # The slow one as well has had a run that went well: a first run takes memory for its imports.
    quick = arena.folder.parent / "quick"
    quick.touch()
    arena.complete(arena.start_run(**SPEC, schedulers=["slow"]))
    quick.unlink()
    return run


def stream_states(arena: ArenaProcess) -> dict[str, StreamState]:
    running = find(arena.folder)
    settings = settings_of(running, "generator")  # the user that may read stream states

    async def ask() -> dict[str, StreamState]:
        client = await nats.connect(
            settings.nats_url,
            user=settings.nats_user,
            password=settings.nats_password.get_secret_value(),
            inbox_prefix=subjects.inbox(settings.nats_user),
        )
        try:
            stream = client.jetstream()
            return {name: (await stream.stream_info(name)).state for name in LIMITS}
        finally:
            await client.close()

    return asyncio.run(ask())


def stream_bytes(arena: ArenaProcess) -> dict[str, int]:
    return {name: state.bytes for name, state in stream_states(arena).items()}


def allowed_growth(arena: ArenaProcess) -> float:
    """How much a service may grow; results are the largest messages."""
    results = stream_states(arena)["RESULTS"]
    return SLACK + COPIES * GROUP * results.bytes / max(results.messages, 1)


def most_memory(arena: ArenaProcess) -> dict[str, float]:
    """The peak of each process so far: one that catches up takes more than one that keeps up."""
    return {name: peak_mb(process) * 1e6 for name, process in processes(arena).items()}


def memory(arena: ArenaProcess) -> dict[str, int]:
    return {name: process.memory_info().rss for name, process in processes(arena).items()}


def until_still(read: Callable[[], Any], still_seconds: float = 4) -> Any:
    """The value, once it has stayed the same for a while."""
    deadline = time.monotonic() + PATIENCE
    seen, since = read(), time.monotonic()
    while time.monotonic() - since < still_seconds:
        assert time.monotonic() < deadline, f"it goes on changing: {seen}"
        time.sleep(0.3)
        if (now := read()) != seen:
            seen, since = now, time.monotonic()
    return seen


def assert_bounded(arena: ArenaProcess, before: dict[str, float]) -> None:
    held = stream_bytes(arena)
    assert all(held[name] <= limit for name, limit in LIMITS.items()), held
    grown = {name: used - before[name] for name, used in memory(arena).items() if name in before}
    growth = allowed_growth(arena)
    # Above what it holds for others a server keeps caches of its own.
    allowed = {name: SERVER_GROWTH if name in SERVERS else growth for name in grown}
    too_much = {name: more for name, more in grown.items() if more > allowed[name]}
    assert not too_much, (too_much, held)


def assert_whole(arena: ArenaProcess, run: str, reference: str) -> None:
    findings = arena.findings(run, reference)
    assert findings.ok, findings.problems
    assert findings.tasks == TASKS


@pytest.mark.parametrize(
    ("victim", "stream", "reader"),
    [
        ("services.recorder", "RESULTS", "results/recorder"),
        ("services.simulator", "DECISIONS", "decisions/simulator-greedy"),
    ],
)
def test_while_a_reader_is_frozen_everything_waits_and_then_catches_up(
    arena: ArenaProcess, reference: str, victim: str, stream: str, reader: str
) -> None:
    (frozen,) = arena.processes(victim)
    before = most_memory(arena)
    frozen.send_signal(signal.SIGSTOP)
    try:
        run = arena.start_run(**SPEC)
        arena.wait_for(run, lambda status: status["tasks_sent"] > 0)
        sent = until_still(lambda: arena.status(run)["tasks_sent"])
        assert BATCH <= sent < TASKS  # the generator waits
        held = stream_bytes(arena)
        assert held[stream] > LIMITS[stream] // 4
        assert stream != "RESULTS" or held[stream] > 1.5 * allowed_growth(arena)
        assert_bounded(arena, before)
        status = arena.status(run)
        assert status["lag"][reader] > 0
        assert status["tasks_sent"] == sent
    finally:
        frozen.send_signal(signal.SIGCONT)
    arena.complete(run)
    assert_whole(arena, run, reference)


def test_a_slow_scheduler_lags_alone_until_the_stream_is_full(
    arena: ArenaProcess, reference: str
) -> None:
    before = most_memory(arena)
    run = arena.start_run(**SPEC, schedulers=[*RULES, "slow"])

    def ahead(status: dict[str, Any]) -> int:
        """Batches by which the slowest of the others is ahead."""
        found = {name: row["results"] for name, row in status["schedulers"].items()}
        others = min(found.get(name, 0) for name in RULES)
        return int(others - found.get("slow", 0)) // BATCH

    status = arena.wait_for(run, lambda status: ahead(status) >= 10)
    assert status["lag"]["tasks/scheduler-slow"] >= 10
    # Then the stream of tasks is as full as it may be, and everybody waits for it.
    arena.wait_for(run, lambda _: stream_bytes(arena)["TASKS"] > 0.6 * LIMITS["TASKS"])
    status = arena.wait_for(
        run, lambda status: all(status["lag"][f"tasks/scheduler-{name}"] <= 1 for name in RULES)
    )
    assert status["tasks_sent"] < TASKS
    assert_bounded(arena, before)
    (arena.folder.parent / "quick").touch()
    arena.complete(run)
    assert_whole(arena, run, reference)
