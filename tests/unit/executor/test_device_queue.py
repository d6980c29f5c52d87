"""A device serves what it was given in the order of the tasks, one part after the other."""

from __future__ import annotations

import asyncio

from services.executor.device_queue import DeviceQueue
from services.executor.jobs import Part
from shared.execution.device_process import Measured, Work


class Blocked:
    """A device that runs a part until it is told to end it."""

    def __init__(self) -> None:
        self.ends = asyncio.Queue[None]()

    async def start(self) -> None: ...
    async def stop(self) -> None: ...

    async def run(self, work: Work) -> Measured:
        await self.ends.get()
        return Measured(0.0, 1.0)


async def test_a_part_that_waited_goes_before_later_tasks_but_not_before_what_runs() -> None:
    device, served = Blocked(), asyncio.Queue[int]()
    queue = DeviceQueue(device, lambda part: served.put_nowait(part.turn))
    serving = asyncio.create_task(queue.serve())
    for turn in (3, 5, 4, 1):
        queue.add(Part(turn, turn, 0, Work("sort", 1, 0, 0.5), expected=1.0))
        await asyncio.sleep(0)  # lets the first one begin
    for _ in range(4):
        device.ends.put_nowait(None)
    assert [await served.get() for _ in range(4)] == [3, 1, 4, 5]
    serving.cancel()
