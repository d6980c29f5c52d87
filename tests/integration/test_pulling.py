"""What the services rely on when they pull, beyond what the libraries promise."""

from __future__ import annotations

import nats.errors

from shared import subjects
from shared.bus import Bus


async def test_a_fetch_whose_time_is_up_ends_with_the_error_that_faststream_knows(bus: Bus) -> None:
    durable = subjects.durable("late", "tasks.*", bus.settings)
    subscription = await bus.stream.pull_subscribe("tasks.*", "late", config=durable)
    ended = []
    for attempt in range(200):
        # From no time at all to enough for an answer: the time runs out at every possible point.
        try:
            await subscription.fetch(batch=8, timeout=attempt * 1e-5 + 1e-6)
        except Exception as error:
            ended.append(type(error))
    await subscription.unsubscribe()
    assert set(ended) == {nats.errors.TimeoutError}
