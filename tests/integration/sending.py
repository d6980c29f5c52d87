"""What the generator has put into a run's stream."""

from __future__ import annotations

from shared import subjects
from shared.batches import Batch
from shared.runs import RunRecord
from tests.integration.arena import Arena, eventually, unchanged


async def sent(arena: Arena, run: RunRecord) -> list[Batch]:
    return await arena.batches(subjects.TASKS, subjects.tasks(run.run))


async def all_sent(arena: Arena, run: RunRecord, tasks: int) -> list[Batch]:
    async def enough() -> bool:
        return await arena.tasks_sent(run) >= tasks

    await eventually(enough, f"{tasks} tasks sent")
    return await sent(arena, run)


async def some_sent(arena: Arena, run: RunRecord, more_than: int = 0) -> int:
    async def some() -> int | None:
        number = await arena.tasks_sent(run)
        return number if number > more_than else None

    return int(await eventually(some, "some tasks sent"))


async def come_to_rest(arena: Arena, run: RunRecord) -> int:
    async def number() -> int:
        return await arena.tasks_sent(run)

    return int(await unchanged(number))
