"""The patches for nats-py bugs do what the services rely on."""

from __future__ import annotations

import nats.errors

from shared.bus import streams
from shared.bus.client import Bus


async def test_a_fetch_that_times_out_raises_the_error_that_faststream_expects(bus: Bus) -> None:
    durable = streams.durable("late", "tasks.*", bus.settings)
    subscription = await bus.jetstream.pull_subscribe("tasks.*", "late", config=durable)
    ended = []
    for attempt in range(200):
        # From no time at all to enough for an answer: the time runs out at every possible point.
        try:
            await subscription.fetch(batch=8, timeout=attempt * 1e-5 + 1e-6)
        except Exception as error:
            ended.append(type(error))
    await subscription.unsubscribe()
    assert set(ended) == {nats.errors.TimeoutError}
