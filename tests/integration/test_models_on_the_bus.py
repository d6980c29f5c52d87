"""The model registry on a real bus."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from shared.bus import model_registry
from shared.bus.client import Bus
from shared.bus.streams import KEPT_VERSIONS
from shared.domain.schedulers import FOREST
from shared.errors import Conflict, NotFound
from shared.messages import subjects
from shared.runtime.settings import Settings
from tests.integration.arena import connect
from tests.integration.model_messages import RUN, SUBJECT, manifest_of, publish_model


@pytest.fixture
async def other(bus: Bus, settings: Settings) -> AsyncIterator[Bus]:
    other = await connect(settings, "other")
    yield other
    await other.broker.stop()


async def test_without_a_model_there_is_no_newest(bus: Bus) -> None:
    assert await model_registry.read_newest(bus, RUN, FOREST) is None
    assert await model_registry.read_stored(bus, RUN, FOREST) == []


async def test_the_model_published_last_is_the_newest(bus: Bus, other: Bus) -> None:
    first = await model_registry.ship(bus, manifest_of(b"one", 1), b"one", after=0)
    second = await model_registry.ship(bus, manifest_of(b"two", 2), b"two", after=first)
    newest = await model_registry.read_newest(other, RUN, FOREST)
    assert newest.manifest == manifest_of(b"two", 2).model_copy(
        update={"created_at": newest.manifest.created_at}
    )
    assert (newest.body, newest.sequence) == (b"two", second)
    assert [model.body for model in await model_registry.read_stored(other, RUN, FOREST)] == [
        b"one",
        b"two",
    ]
    assert (await model_registry.read_version(other, RUN, FOREST, 1)).body == b"one"


async def test_an_unknown_version_is_not_found(bus: Bus) -> None:
    await model_registry.ship(bus, manifest_of(b"one", 1), b"one", after=0)
    with pytest.raises(NotFound, match="version 2 of hybrid_ml in run r1"):
        await model_registry.read_version(bus, RUN, FOREST, 2)


async def test_runs_and_learners_have_their_own_models(bus: Bus) -> None:
    for run, name in ((RUN, FOREST), ("r2", FOREST), (RUN, "rl_agent")):
        body = f"{run} {name}".encode()
        await model_registry.ship(bus, manifest_of(body, 1, run, name), body, after=0)
    newest = await model_registry.read_newest(bus, RUN, FOREST)
    assert newest.body == b"r1 hybrid_ml"
    assert len(await model_registry.read_stored(bus, RUN, FOREST)) == 1


async def test_two_trainers_cannot_both_publish_a_version(bus: Bus, other: Bus) -> None:
    first = await model_registry.ship(bus, manifest_of(b"mine", 1), b"mine", after=0)
    with pytest.raises(Conflict):
        await model_registry.ship(other, manifest_of(b"yours", 1), b"yours", after=0)
    await model_registry.ship(other, manifest_of(b"two", 2), b"two", after=first)
    with pytest.raises(Conflict):
        await model_registry.ship(bus, manifest_of(b"mine too", 2), b"mine too", after=first)
    assert [m.body for m in await model_registry.read_stored(bus, RUN, FOREST)] == [b"mine", b"two"]


async def test_a_version_with_an_older_ones_model_is_not_taken_for_it(bus: Bus, other: Bus) -> None:
    """A rollback by a trainer that has missed a version: it would say that it is done."""
    await model_registry.ship(bus, manifest_of(b"one", 1), b"one", after=0)
    with pytest.raises(Conflict):
        await model_registry.ship(other, manifest_of(b"one", 2), b"one", after=0)
    assert len(await model_registry.read_stored(bus, RUN, FOREST)) == 1


async def test_a_model_that_is_published_again_is_stored_once(bus: Bus) -> None:
    """As after a lost acknowledgement."""
    first = await model_registry.ship(bus, manifest_of(b"one", 1), b"one", after=0)
    assert await model_registry.ship(bus, manifest_of(b"one", 1), b"one", after=0) == first
    assert len(await model_registry.read_stored(bus, RUN, FOREST)) == 1


async def test_only_the_newest_versions_are_kept(bus: Bus) -> None:
    last = 0
    for version in range(1, KEPT_VERSIONS + 5):
        last = await model_registry.ship(bus, manifest_of(b"x", version), b"x", after=last)
    stored = [m.manifest.version for m in await model_registry.read_stored(bus, RUN, FOREST)]
    assert stored == list(range(5, KEPT_VERSIONS + 5))
    with pytest.raises(NotFound):
        await model_registry.read_version(bus, RUN, FOREST, 4)


async def test_an_unreadable_model_does_not_hide_the_others(bus: Bus) -> None:
    await publish_model(bus, 1, b"one")
    await bus.jetstream.publish(SUBJECT, b"garbage")
    last = await bus.jetstream.get_last_msg(subjects.MODELS, SUBJECT)
    await model_registry.ship(bus, manifest_of(b"two", 2), b"two", after=last.seq or 0)
    stored = [m.manifest.version for m in await model_registry.read_stored(bus, RUN, FOREST)]
    assert stored == [1, 2]
    assert (await model_registry.read_version(bus, RUN, FOREST, 2)).body == b"two"
