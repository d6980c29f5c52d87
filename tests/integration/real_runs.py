"""Real runs on devices that only wait, and what to expect of them."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from services.executor.app import make
from shared.bus.service import Service
from shared.execution.device_process import Measured, Work
from shared.messages.runs import RunRecord
from tests.integration.arena import Arena, as_user

# Tasks of 10 ms: those of the formula take (size / 1000)^1.5 seconds at intensity 0.5.
SPEC: dict[str, Any] = {
    "execution": {"mode": "real", "stretch_tasks": 5},
    "cluster": {
        "devices": [
            {"type": "fast", "watts": 10, "real": {"cores": [0]}},
            {"type": "cpu", "watts": 2, "real": {"cores": [0]}},
        ]
    },
    "workload": {
        "arrival_rate": 40,
        "divisible": False,
        "mix": {
            "size": {"kind": "uniform", "low": 30, "high": 60},
            "intensity": {"kind": "uniform", "low": 0.4, "high": 0.6},
            "memory": {"values": {"kind": "uniform", "low": 1, "high": 2}},
        },
    },
    "learning": {"pretrain_tasks": 0},
}


@dataclass
class WaitingDevice:
    """Takes 10 ms for each task, and remembers what it did."""

    seconds: float = 0.01
    works: list[tuple[float, Work]] = field(default_factory=list)
    running: bool = False
    stopped: bool = False

    async def start(self) -> None:
        self.stopped = False

    async def run(self, work: Work) -> Measured:
        assert not self.running, "one at a time"
        self.running = True
        started = time.monotonic()
        self.works.append((started, work))
        try:
            await asyncio.sleep(self.seconds * work.share)
        finally:
            self.running = False
        return Measured(started, time.monotonic(), transfer_s=0.001, failure=self.failure(work))

    def failure(self, work: Work) -> str | None:
        return None

    async def stop(self) -> None:
        self.stopped = True


async def start_executor(arena: Arena, devices: list[WaitingDevice]) -> Service:
    """An executor whose devices are these, one after the other, and then again."""
    following = cycle(devices)
    service = make(as_user("executor", arena.settings), lambda *_: next(following))
    arena._services.append(service)
    await service.start()
    await service.bus.broker.start()
    await service.after_start()
    return service


def results(arena: Arena, run: RunRecord, scheduler: str) -> list[dict[str, Any]]:
    """As they are stored, in task order, with the tasks' columns."""
    return arena.store.query(
        "SELECT * FROM scheduler_results AS r FINAL JOIN tasks AS t FINAL USING (run, task_id) "
        "WHERE run = {run:String} AND scheduler = {scheduler:String} ORDER BY task_id",
        {"run": run.run, "scheduler": scheduler},
    )
