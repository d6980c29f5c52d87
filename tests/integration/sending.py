"""What the generator has put into a run's stream."""

from __future__ import annotations

from shared.messages import subjects
from shared.messages.batches import Batch
from shared.messages.runs import RunRecord
from tests.integration.arena import Arena, eventually, unchanged


async def sent(arena: Arena, run: RunRecord) -> list[Batch]:
    return await arena.batches(subjects.TASKS, subjects.tasks(run.run))


async def all_sent(arena: Arena, run: RunRecord, tasks: int) -> list[Batch]:
    await eventually(
        lambda: arena.tasks_sent(run), f"{tasks} tasks sent", accept=lambda number: number >= tasks
    )
    return await sent(arena, run)


async def some_sent(arena: Arena, run: RunRecord, more_than: int = 0) -> int:
    number = await eventually(lambda: arena.tasks_sent(run), accept=lambda sent: sent > more_than)
    return int(number)


async def come_to_rest(arena: Arena, run: RunRecord) -> int:
    return int(await unchanged(lambda: arena.tasks_sent(run)))
