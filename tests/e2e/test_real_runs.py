"""A real run in a whole arena, whose executor is killed."""

from __future__ import annotations

import psutil

from tests.e2e.arena import ArenaProcess
from tests.real_results import ROWS, SPEC, check_rows


def device_processes(arena: ArenaProcess) -> list[psutil.Process]:
    return [
        child
        for executor in arena.processes("services.executor")
        for child in executor.children(recursive=True)
    ]


def test_a_killed_executor_loses_and_doubles_nothing(shared_arena: ArenaProcess) -> None:
    run = shared_arena.start_run(**SPEC)
    shared_arena.wait_for(run, lambda status: status["tasks_processed"] > 5, timeout=300)
    devices = device_processes(shared_arena)
    assert devices
    shared_arena.kill("services.executor")
    psutil.wait_procs(devices, timeout=30)
    assert not any(device.is_running() for device in devices)
    shared_arena.complete(run, timeout=600)
    check_rows(shared_arena.sql(ROWS.format(run=run)))
