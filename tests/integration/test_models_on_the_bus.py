"""Models on a real bus: shipped once, kept, and found again."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from shared import models, subjects
from shared.bus import Bus
from shared.errors import Conflict, NotFound
from shared.models import FOREST
from shared.settings import Settings
from shared.subjects import KEPT_VERSIONS
from tests.integration.arena import connect
from tests.integration.shipping import RUN, SUBJECT, manifest_of, shipped


@pytest.fixture
async def other(bus: Bus, settings: Settings) -> AsyncIterator[Bus]:
    other = await connect(settings, "other")
    yield other
    await other.broker.stop()


async def test_without_a_model_there_is_no_newest(bus: Bus) -> None:
    assert await models.newest(bus, RUN, FOREST) is None
    assert await models.stored(bus, RUN, FOREST) == []


async def test_what_was_shipped_last_is_the_newest(bus: Bus, other: Bus) -> None:
    first = await models.ship(bus, manifest_of(b"one", 1), b"one", after=0)
    second = await models.ship(bus, manifest_of(b"two", 2), b"two", after=first)
    newest = await models.newest(other, RUN, FOREST)
    assert newest is not None
    assert newest.manifest == manifest_of(b"two", 2).model_copy(
        update={"created_at": newest.manifest.created_at}
    )
    assert (newest.body, newest.sequence) == (b"two", second)
    assert [model.body for model in await models.stored(other, RUN, FOREST)] == [b"one", b"two"]
    assert (await models.version(other, RUN, FOREST, 1)).body == b"one"


async def test_a_version_that_never_was_is_not_found(bus: Bus) -> None:
    await models.ship(bus, manifest_of(b"one", 1), b"one", after=0)
    with pytest.raises(NotFound, match="version 2 of hybrid_ml in run r1"):
        await models.version(bus, RUN, FOREST, 2)


async def test_models_of_other_runs_and_learners_are_others(bus: Bus) -> None:
    for run, name in ((RUN, FOREST), ("r2", FOREST), (RUN, "rl_agent")):
        body = f"{run} {name}".encode()
        await models.ship(bus, manifest_of(body, 1, run, name), body, after=0)
    newest = await models.newest(bus, RUN, FOREST)
    assert newest is not None
    assert newest.body == b"r1 hybrid_ml"
    assert len(await models.stored(bus, RUN, FOREST)) == 1


async def test_two_trainers_cannot_both_ship_a_version(bus: Bus, other: Bus) -> None:
    first = await models.ship(bus, manifest_of(b"mine", 1), b"mine", after=0)
    with pytest.raises(Conflict):
        await models.ship(other, manifest_of(b"yours", 1), b"yours", after=0)
    await models.ship(other, manifest_of(b"two", 2), b"two", after=first)
    with pytest.raises(Conflict):
        await models.ship(bus, manifest_of(b"mine too", 2), b"mine too", after=first)
    assert [m.body for m in await models.stored(bus, RUN, FOREST)] == [b"mine", b"two"]


async def test_a_model_that_is_shipped_again_is_there_once(bus: Bus) -> None:
    """As after an answer that was lost."""
    first = await models.ship(bus, manifest_of(b"one", 1), b"one", after=0)
    assert await models.ship(bus, manifest_of(b"one", 1), b"one", after=0) == first
    assert len(await models.stored(bus, RUN, FOREST)) == 1


async def test_only_the_newest_versions_are_kept(bus: Bus) -> None:
    last = 0
    for version in range(1, KEPT_VERSIONS + 5):
        last = await models.ship(bus, manifest_of(b"x", version), b"x", after=last)
    held = [model.manifest.version for model in await models.stored(bus, RUN, FOREST)]
    assert held == list(range(5, KEPT_VERSIONS + 5))
    with pytest.raises(NotFound):
        await models.version(bus, RUN, FOREST, 4)


async def test_one_that_cannot_be_read_does_not_hide_the_others(bus: Bus) -> None:
    await shipped(bus, 1, b"one")
    await bus.stream.publish(SUBJECT, b"garbage")
    last = await bus.stream.get_last_msg(subjects.MODELS, SUBJECT)
    await models.ship(bus, manifest_of(b"two", 2), b"two", after=last.seq or 0)
    assert [m.manifest.version for m in await models.stored(bus, RUN, FOREST)] == [1, 2]
    assert (await models.version(bus, RUN, FOREST, 2)).body == b"two"
