"""A cluster of three NATS nodes loses one of them under load, and no result is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.arena import ArenaProcess
from tests.e2e.nats_cluster import Cluster, exactly_once, pause_after_losing

TASKS = 8000


@pytest.mark.long
async def test_a_node_then_the_leader_then_all_are_killed_and_nothing_is_lost_or_doubled(
    tmp_path: Path,
) -> None:
    arena = ArenaProcess(tmp_path / "data", "--idle", "--nats-nodes", "3")
    try:
        cluster = Cluster(arena)
        reference = arena.start_run(tasks=TASKS, pace="max", seed=5)
        arena.complete(reference)
        run = arena.start_run(tasks=TASKS, pace=150, seed=5)
        arena.wait_for(run, lambda status: status["tasks_processed"] > 100)
        for leader in (False, True):
            await cluster.in_sync_while_paused(run)
            assert await pause_after_losing(cluster, run, leader=leader)
        await cluster.in_sync_while_paused(run)
        for name in cluster.names:
            cluster.kill(name)
        assert arena.complete(run)["tasks_processed"] == TASKS
        assert exactly_once(arena, run, TASKS), arena.counted(run)
        assert arena.findings(run, reference).problems == []
        # The nodes that were killed have everything again.
        await cluster.in_sync()
    finally:
        arena.stop()
