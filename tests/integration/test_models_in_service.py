"""Models in service: loaded by every worker when published, refused when invalid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from services.scheduler import model_cache
from services.scheduler.frozen_forest import FrozenForest
from services.scheduler.loaded_policies import LoadedPolicies
from services.scheduler.model_cache import ModelCache
from services.trainer.learners import hybrid_ml as forest
from shared.bus import model_registry, streams
from shared.bus.client import Bus
from shared.bus.task_stream import Position, load_position
from shared.domain.schedulers import FOREST
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.domain.workload import Cursor, generate
from shared.errors import ModelRefused
from shared.messages import signatures, subjects
from shared.messages.batches import Batch
from shared.messages.events import Event
from shared.messages.models import MANIFEST, SIGNATURE, Manifest
from shared.messages.runs import RunRecord
from tests.integration.arena import Arena, eventually
from tests.integration.model_messages import RUN, SUBJECT, manifest_of, publish_model

ONE_TREE = RunSpec.parse({"learning": {"forest": {"trees": 1}}})


def always(share: float) -> bytes:
    """A model that predicts that share for every task."""
    tasks, _ = generate(ONE_TREE, Cursor(), 10)
    return forest.fit(forest.LabelledTasks(tasks, np.full(10, share)), ONE_TREE)


def one_task() -> Tasks:
    return generate(ONE_TREE, Cursor(), 1)[0]


@pytest.fixture
def no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers receive new models by their subscription only."""
    monkeypatch.setattr(model_cache, "POLL_SECONDS", 1e9)


class Worker:
    """A scheduler on the bus, observed by its decisions."""

    def __init__(self, arena: Arena, run: RunRecord, stream: str = subjects.DECISIONS) -> None:
        self.arena = arena
        self.run = run
        self.stream = stream  # a simulator removes decisions

    async def decide(self) -> tuple[int, float]:
        """Model version and share of one more batch."""
        position = await load_position(self.arena.bus, self.run.run)
        tasks, cursor = generate(self.run.spec, position.cursor, 3)
        batch = position.next_message(self.run.run, tasks, cursor)
        await self.arena.bus.publish_batch(batch, after=position.sequence)
        subject = f"{self.stream.lower()}.{self.run.run}.{FOREST}"

        async def decision() -> Batch | None:
            decisions = await self.arena.batches(self.stream, subject)
            return next((d for d in decisions if d.envelope.batch == batch.envelope.batch), None)

        rows = (await eventually(decision)).rows.to_pydict()
        (version,), shares = set(rows["model_version"]), rows["gpu_fraction"]
        return version, shares[0] if version else -1

    async def wait_for_model(self, version: int, share: float) -> None:
        await eventually(
            lambda: self.decide(), f"decisions with version {version}", equals=(version, share)
        )


async def deployed(arena: Arena, *policies: str) -> RunRecord:
    names = [policy.rpartition(":")[2] for policy in policies]
    await arena.schedulers(*policies)
    own = {"FrozenForest": "frozen_forest"}
    return await arena.run(schedulers=[own.get(name, name) for name in names])


async def publish(arena: Arena, run: RunRecord, body: bytes, manifest: Manifest | str) -> None:
    text = manifest if isinstance(manifest, str) else manifest.model_dump_json()
    await arena.jetstream.publish(subjects.model(run.run, FOREST), body, headers={MANIFEST: text})


async def publish_valid(arena: Arena, run: RunRecord, version: int, share: float) -> None:
    body = always(share)
    await publish(arena, run, body, manifest_of(body, version, run.run))


async def refusals(arena: Arena) -> list[Event]:
    return [Event.model_validate_json(event) for event in await arena.events("model_refused")]


@pytest.mark.usefixtures("no_polling")
async def test_before_the_first_model_the_rule_of_greedy_decides(arena: Arena) -> None:
    run = await deployed(arena, "hybrid_ml")
    tasks, cursor = generate(run.spec, Cursor(), 5)
    batch = Position().next_message(run.run, tasks, cursor)
    await arena.bus.publish_batch(batch)
    (decision,) = await eventually(
        lambda: arena.batches(subjects.DECISIONS, subjects.decisions(run.run, FOREST))
    )
    rows = decision.rows.to_pydict()
    assert rows["gpu_fraction"] == tasks.compute_intensity.tolist()
    assert rows["model_version"] == [0] * 5
    # The first model is loaded like any other.
    await publish_valid(arena, run, 1, 0.25)
    await Worker(arena, run).wait_for_model(1, 0.25)


@pytest.mark.usefixtures("no_polling")
async def test_the_first_batch_is_decided_with_the_newest_model(arena: Arena) -> None:
    run = await deployed(arena, "hybrid_ml")
    for version, share in ((1, 0.25), (2, 0.5), (3, 0.75)):
        await publish_valid(arena, run, version, share)
    assert await Worker(arena, run).decide() == (3, 0.75)
    assert await refusals(arena) == []


@pytest.mark.usefixtures("no_polling")
async def test_a_published_model_is_put_into_service(arena: Arena) -> None:
    run = await deployed(arena, "hybrid_ml")
    worker = Worker(arena, run)
    await publish_valid(arena, run, 1, 0.25)
    assert await worker.decide() == (1, 0.25)
    for version, share in ((2, 0.5), (3, 0.75)):
        await publish_valid(arena, run, version, share)
        await worker.wait_for_model(version, share)


@pytest.mark.usefixtures("no_polling")
async def test_a_late_worker_loads_the_newest_model(arena: Arena) -> None:
    run = await deployed(arena, "hybrid_ml")
    (first,) = arena._services
    await arena.start("simulator")  # its results tell the late worker where the run is
    worker = Worker(arena, run, subjects.RESULTS)
    await publish_valid(arena, run, 1, 0.25)
    assert await worker.decide() == (1, 0.25)
    await arena.stop(first)
    await publish_valid(arena, run, 2, 0.5)
    await arena.schedulers("hybrid_ml")
    assert await worker.decide() == (2, 0.5)


@pytest.mark.usefixtures("no_polling")
async def test_every_run_has_its_own_models(arena: Arena) -> None:
    await arena.schedulers("hybrid_ml")
    runs = [await arena.run(schedulers=[FOREST]) for _ in range(2)]
    for run, share in zip(runs, (0.25, 0.75), strict=True):
        await publish_valid(arena, run, 1, share)
    for run, share in zip(runs, (0.25, 0.75), strict=True):
        assert await Worker(arena, run).decide() == (1, share)
    await publish_valid(arena, runs[0], 2, 0.5)
    await Worker(arena, runs[0]).wait_for_model(2, 0.5)
    assert await Worker(arena, runs[1]).decide() == (1, 0.75)


async def changed_body(arena: Arena, run: RunRecord) -> None:
    body = always(1.0)
    await publish(arena, run, body + b"\0", manifest_of(body, 2, run.run))


async def of_another_run(arena: Arena, run: RunRecord) -> None:
    body = always(1.0)
    await publish(arena, run, body, manifest_of(body, 2, "another"))


async def with_a_broken_manifest(arena: Arena, run: RunRecord) -> None:
    await publish(arena, run, always(1.0), "{broken")


async def without_a_manifest(arena: Arena, run: RunRecord) -> None:
    await arena.jetstream.publish(subjects.model(run.run, FOREST), always(1.0))


async def not_a_model(arena: Arena, run: RunRecord) -> None:
    await publish(arena, run, b"garbage", manifest_of(b"garbage", 2, run.run))


REFUSED: dict[str, Any] = {
    "the hash does not match": changed_body,
    "a model of hybrid_ml in another came on": of_another_run,
    "no readable manifest": with_a_broken_manifest,
    "no readable manifest: there is none": without_a_manifest,
    "cannot be opened": not_a_model,
}


@pytest.mark.usefixtures("no_polling")
@pytest.mark.parametrize("reason", REFUSED)
async def test_an_invalid_model_is_refused_and_the_old_one_stays(arena: Arena, reason: str) -> None:
    run = await deployed(arena, "hybrid_ml")
    worker = Worker(arena, run)
    await publish_valid(arena, run, 1, 0.25)
    assert await worker.decide() == (1, 0.25)
    await REFUSED[reason](arena, run)
    (event,) = await eventually(lambda: refusals(arena))
    assert (event.run, event.service) == (run.run, "scheduler")
    assert event.message.startswith("a model of hybrid_ml was refused, the old one stays: ")
    assert reason in event.message
    assert await worker.decide() == (1, 0.25)
    # The next valid one is put into service.
    await publish_valid(arena, run, 3, 0.75)
    await worker.wait_for_model(3, 0.75)
    assert len(await refusals(arena)) == 1


@pytest.mark.parametrize("reason", REFUSED)
async def test_a_late_worker_skips_an_invalid_model(arena: Arena, reason: str) -> None:
    run = await arena.run(schedulers=["hybrid_ml"])
    await publish_valid(arena, run, 1, 0.25)
    await publish_valid(arena, run, 2, 0.5)
    await REFUSED[reason](arena, run)
    await arena.schedulers("hybrid_ml")
    assert await Worker(arena, run).decide() == (2, 0.5)
    (event,) = await refusals(arena)
    assert reason in event.message


@pytest.mark.usefixtures("no_polling")
async def test_with_invalid_models_only_the_rule_of_greedy_decides(arena: Arena) -> None:
    run = await deployed(arena, "hybrid_ml")
    await not_a_model(arena, run)
    worker = Worker(arena, run)
    assert await worker.decide() == (0, -1)
    assert await worker.decide() == (0, -1)
    await publish_valid(arena, run, 3, 0.75)
    await worker.wait_for_model(3, 0.75)


KEY = signatures.new_key()


@pytest.mark.usefixtures("no_polling")
@pytest.mark.parametrize("signer", ["nobody", "somebody else", "the trainer, for another model"])
async def test_a_model_that_the_trainer_did_not_sign_is_refused(arena: Arena, signer: str) -> None:
    await arena.start("scheduler", policy=FOREST, model_public_key=signatures.public_key(KEY))
    run = await arena.run(schedulers=[FOREST])
    worker = Worker(arena, run)
    body = always(1.0)
    text = manifest_of(body, 2, run.run).model_dump_json()
    other = manifest_of(body, 1, run.run).model_dump_json()
    signed_by = {
        "nobody": "",
        "somebody else": signatures.sign(signatures.new_key(), text),
        "the trainer, for another model": signatures.sign(KEY, other),
    }
    subject = subjects.model(run.run, FOREST)
    headers = {MANIFEST: text, SIGNATURE: signed_by[signer]}
    await arena.jetstream.publish(subject, body, headers=headers)
    assert await worker.decide() == (0, -1)
    (event,) = await refusals(arena)
    assert "it is not signed by this arena's trainer" in event.message
    # A model signed by the trainer is loaded.
    body = always(0.25)
    text = manifest_of(body, 3, run.run).model_dump_json()
    signed = {MANIFEST: text, SIGNATURE: signatures.sign(KEY, text)}
    await arena.jetstream.publish(subject, body, headers=signed)
    await worker.wait_for_model(3, 0.25)


async def test_published_models_are_signed(bus: Bus) -> None:
    settings = bus.settings
    bus.settings = settings.model_copy(
        update={"model_key": SecretStr(KEY), "model_public_key": signatures.public_key(KEY)}
    )
    await publish_model(bus, 1, b"model")
    assert (await model_registry.read_newest(bus, RUN, FOREST)) is not None
    bus.settings = settings.model_copy(
        update={"model_public_key": signatures.public_key("01" * 32)}
    )
    with pytest.raises(ModelRefused, match="not signed"):
        await model_registry.read_newest(bus, RUN, FOREST)


FROZEN_FOREST = "services.scheduler.frozen_forest:FrozenForest"


class TestModelCache:
    """Without a subscription to new models."""

    async def version_used(self, cache: ModelCache) -> int:
        return (await cache.model(RUN))[1]

    async def test_a_missed_model_is_found_by_polling(
        self, bus: Bus, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cache = ModelCache(LoadedPolicies("hybrid_ml"), bus)
        await publish_model(bus, 1, always(0.25))
        assert await self.version_used(cache) == 1
        await publish_model(bus, 2, always(0.5))
        assert await self.version_used(cache) == 1
        monkeypatch.setattr(model_cache, "POLL_SECONDS", 0.0)
        assert await self.version_used(cache) == 2

    async def test_an_old_model_that_arrives_late_is_ignored(self, bus: Bus) -> None:
        cache = ModelCache(LoadedPolicies("hybrid_ml"), bus)
        old = always(0.25)
        await publish_model(bus, 1, old)
        await publish_model(bus, 2, always(0.5))
        assert await self.version_used(cache) == 2
        headers = {MANIFEST: manifest_of(old, 1).model_dump_json()}
        await cache.on_model(SUBJECT, headers, old)
        assert await self.version_used(cache) == 2

    async def test_models_of_runs_without_a_decision_are_ignored(self, bus: Bus) -> None:
        cache = ModelCache(LoadedPolicies("hybrid_ml"), bus)
        for number in range(50):
            await cache.on_model(f"models.other{number}.{FOREST}", {}, b"")
        assert cache._entries == {}
        assert (await bus.jetstream.stream_info(subjects.EVENTS)).state.messages == 0

    async def test_the_model_of_a_run_that_starts_is_opened_before_its_first_batch(
        self, bus: Bus
    ) -> None:
        cache = ModelCache(LoadedPolicies("hybrid_ml"), bus)
        body = always(0.25)
        headers = {MANIFEST: manifest_of(body, 1).model_dump_json()}
        await cache.on_model(SUBJECT, headers, body, expected=True)
        assert [entry.version for entry in cache._entries.values()] == [1]

    async def test_it_keeps_the_models_of_the_runs_used_last(self, bus: Bus) -> None:
        cache = ModelCache(LoadedPolicies("hybrid_ml"), bus)
        body = always(0.25)
        for number in range(model_cache.CACHED_RUNS + 3):
            run = f"run{number}"
            await model_registry.ship(bus, manifest_of(body, 1, run), body, after=0)
            assert (await cache.model(run))[1] == 1
        assert len(cache._entries) == model_cache.CACHED_RUNS
        assert (await cache.model("run0"))[1] == 1

    async def test_a_frozen_policy_finds_its_model_after_many_versions(self, bus: Bus) -> None:
        cache = ModelCache(LoadedPolicies(FROZEN_FOREST), bus)
        await publish_model(bus, 1, always(0.25))
        for version in range(2, streams.KEPT_VERSIONS + 3):
            await publish_model(bus, version, always(0.5))
        model, version = await cache.model(RUN)
        shares = FrozenForest().prepare_with(model, one_task(), ONE_TREE)
        assert (version, shares.tolist()) == (1, [0.25])

    async def test_a_frozen_policy_keeps_its_first_model(
        self, bus: Bus, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(model_cache, "POLL_SECONDS", 0.0)
        cache = ModelCache(LoadedPolicies(FROZEN_FOREST), bus)
        assert await self.version_used(cache) == 0
        for version in (1, 2, 3):
            await publish_model(bus, version, always(version / 4))
            assert await self.version_used(cache) == 1
