"""Models in service: taken by every worker as they come, refused when they are not right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from services.scheduler import learned
from services.scheduler.frozen import FrozenForest
from services.scheduler.learned import Shelf
from services.scheduler.policies.hybrid_ml import HybridMl
from services.trainer import forest
from shared import models, signing, subjects
from shared.batches import Batch
from shared.bus import Bus
from shared.errors import ModelRefused
from shared.events import Event
from shared.models import FOREST, MANIFEST, SIGNATURE, Manifest
from shared.runs import RunRecord
from shared.spec import RunSpec
from shared.stream import Position, load_position
from shared.tasks import Tasks
from shared.workload import Cursor, generate
from tests.integration.arena import Arena, eventually
from tests.integration.shipping import RUN, SUBJECT, manifest_of, shipped

ONE_TREE = RunSpec.parse({"learning": {"forest": {"trees": 1}}})


def always(share: float) -> bytes:
    """A model that gives every task that share."""
    tasks, _ = generate(ONE_TREE, Cursor(), 10)
    return forest.fit(forest.Labelled(tasks, np.full(10, share)), ONE_TREE)


def one_task() -> Tasks:
    return generate(ONE_TREE, Cursor(), 1)[0]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks again by itself: what workers learn of, they learn of by announcements."""
    monkeypatch.setattr(learned, "LOOK_AGAIN_SECONDS", 1e9)


class Worker:
    """A scheduler on the bus, seen through its decisions."""

    def __init__(self, arena: Arena, run: RunRecord, name: str = FOREST) -> None:
        self.arena = arena
        self.run = run
        self.name = name

    async def decides(self) -> tuple[int, float]:
        """Model version and share of one more batch."""
        position = await load_position(self.arena.bus, self.run.run)
        tasks, cursor = generate(self.run.spec, position.cursor, 3)
        batch = position.next_message(self.run.run, tasks, cursor)
        await self.arena.bus.publish_batch(batch, after=position.sequence)
        subject = subjects.decisions(self.run.run, self.name)

        async def decision() -> Batch | None:
            found = await self.arena.batches(subjects.DECISIONS, subject)
            return next((b for b in found if b.envelope.batch == batch.envelope.batch), None)

        rows = (await eventually(decision)).rows.to_pydict()
        (version,), shares = set(rows["model_version"]), rows["gpu_fraction"]
        return version, shares[0] if version else -1

    async def comes_to_decide_with(self, version: int, share: float) -> None:
        async def decides() -> bool:
            return await self.decides() == (version, share)

        await eventually(decides, f"decisions with version {version}")


async def deployed(arena: Arena, *policies: str) -> RunRecord:
    names = [policy.rpartition(":")[2] for policy in policies]
    await arena.schedulers(*policies)
    own = {"FrozenForest": "frozen_forest"}
    return await arena.run(schedulers=[own.get(name, name) for name in names])


async def put(arena: Arena, run: RunRecord, body: bytes, manifest: Manifest | str) -> None:
    """A message on the subject of the run's models, whatever it is."""
    said = manifest if isinstance(manifest, str) else manifest.model_dump_json()
    await arena.stream.publish(subjects.model(run.run, FOREST), body, headers={MANIFEST: said})


async def put_right(arena: Arena, run: RunRecord, version: int, share: float) -> None:
    body = always(share)
    await put(arena, run, body, manifest_of(body, version, run.run))


async def refusals(arena: Arena) -> list[Event]:
    return [Event.model_validate_json(event) for event in await arena.events("model_refused")]


@pytest.mark.usefixtures("patient")
async def test_before_any_model_the_rule_of_greedy_decides(arena: Arena) -> None:
    run = await deployed(arena, "hybrid_ml")
    tasks, cursor = generate(run.spec, Cursor(), 5)
    batch = Position().next_message(run.run, tasks, cursor)
    await arena.bus.publish_batch(batch)

    async def decided() -> list[Batch]:
        return await arena.batches(subjects.DECISIONS, subjects.decisions(run.run, FOREST))

    (decision,) = await eventually(decided)
    said = decision.rows.to_pydict()
    assert said["gpu_fraction"] == tasks.compute_intensity.tolist()
    assert said["model_version"] == [0] * 5
    # The first model is noticed as well as any other.
    await put_right(arena, run, 1, 0.25)
    await Worker(arena, run).comes_to_decide_with(1, 0.25)


@pytest.mark.usefixtures("patient")
async def test_the_first_batch_is_decided_with_the_newest_model(arena: Arena) -> None:
    run = await deployed(arena, "hybrid_ml")
    for version, share in ((1, 0.25), (2, 0.5), (3, 0.75)):
        await put_right(arena, run, version, share)
    assert await Worker(arena, run).decides() == (3, 0.75)
    assert await refusals(arena) == []


@pytest.mark.usefixtures("patient")
async def test_a_model_that_is_announced_takes_over(arena: Arena) -> None:
    run = await deployed(arena, "hybrid_ml")
    worker = Worker(arena, run)
    await put_right(arena, run, 1, 0.25)
    assert await worker.decides() == (1, 0.25)
    for version, share in ((2, 0.5), (3, 0.75)):
        await put_right(arena, run, version, share)
        await worker.comes_to_decide_with(version, share)


@pytest.mark.usefixtures("patient")
async def test_a_worker_that_comes_late_gets_the_newest(arena: Arena) -> None:
    run = await deployed(arena, "hybrid_ml")
    (first,) = arena._services
    worker = Worker(arena, run)
    await put_right(arena, run, 1, 0.25)
    assert await worker.decides() == (1, 0.25)
    await arena.stop(first)
    await put_right(arena, run, 2, 0.5)
    await arena.schedulers("hybrid_ml")
    assert await worker.decides() == (2, 0.5)


@pytest.mark.usefixtures("patient")
async def test_every_run_has_its_own_models(arena: Arena) -> None:
    await arena.schedulers("hybrid_ml")
    runs = [await arena.run(schedulers=[FOREST]) for _ in range(2)]
    for run, share in zip(runs, (0.25, 0.75), strict=True):
        await put_right(arena, run, 1, share)
    for run, share in zip(runs, (0.25, 0.75), strict=True):
        assert await Worker(arena, run).decides() == (1, share)
    await put_right(arena, runs[0], 2, 0.5)
    await Worker(arena, runs[0]).comes_to_decide_with(2, 0.5)
    assert await Worker(arena, runs[1]).decides() == (1, 0.75)


async def tampered(arena: Arena, run: RunRecord) -> None:
    body = always(1.0)
    await put(arena, run, body + b"\0", manifest_of(body, 2, run.run))


async def of_another_run(arena: Arena, run: RunRecord) -> None:
    body = always(1.0)
    await put(arena, run, body, manifest_of(body, 2, "another"))


async def with_a_broken_manifest(arena: Arena, run: RunRecord) -> None:
    await put(arena, run, always(1.0), "{broken")


async def without_a_manifest(arena: Arena, run: RunRecord) -> None:
    await arena.stream.publish(subjects.model(run.run, FOREST), always(1.0))


async def unreadable(arena: Arena, run: RunRecord) -> None:
    await put(arena, run, b"garbage", manifest_of(b"garbage", 2, run.run))


REFUSED: dict[str, Any] = {
    "the hash does not match": tampered,
    "a model of hybrid_ml in another came on": of_another_run,
    "no readable manifest": with_a_broken_manifest,
    "no readable manifest: there is none": without_a_manifest,
    "cannot be opened": unreadable,
}


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("reason", REFUSED)
async def test_a_model_that_is_not_right_is_refused_and_the_old_one_stays(
    arena: Arena, reason: str
) -> None:
    run = await deployed(arena, "hybrid_ml")
    worker = Worker(arena, run)
    await put_right(arena, run, 1, 0.25)
    assert await worker.decides() == (1, 0.25)
    await REFUSED[reason](arena, run)

    async def told() -> list[Event]:
        return await refusals(arena)

    (event,) = await eventually(told)
    assert (event.run, event.service) == (run.run, "scheduler")
    assert event.message.startswith("a model of hybrid_ml was refused, the old one stays: ")
    assert reason in event.message
    assert await worker.decides() == (1, 0.25)
    # The next good one takes over.
    await put_right(arena, run, 3, 0.75)
    await worker.comes_to_decide_with(3, 0.75)
    assert len(await refusals(arena)) == 1


@pytest.mark.parametrize("reason", REFUSED)
async def test_a_worker_that_comes_late_passes_over_a_model_that_is_not_right(
    arena: Arena, reason: str
) -> None:
    run = await deployed(arena, "hybrid_ml")
    await put_right(arena, run, 1, 0.25)
    await put_right(arena, run, 2, 0.5)
    await REFUSED[reason](arena, run)
    assert await Worker(arena, run).decides() == (2, 0.5)
    (event,) = await refusals(arena)
    assert reason in event.message


@pytest.mark.usefixtures("patient")
async def test_only_wrong_models_leave_it_to_the_rule_of_greedy(arena: Arena) -> None:
    run = await deployed(arena, "hybrid_ml")
    await unreadable(arena, run)
    worker = Worker(arena, run)
    assert await worker.decides() == (0, -1)
    assert await worker.decides() == (0, -1)
    await put_right(arena, run, 3, 0.75)
    await worker.comes_to_decide_with(3, 0.75)


KEY = signing.new_key()


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("signer", ["nobody", "somebody else", "the trainer, for another model"])
async def test_a_model_that_the_trainer_did_not_sign_is_refused(arena: Arena, signer: str) -> None:
    await arena.start("scheduler", policy=FOREST, model_public_key=signing.public_key(KEY))
    run = await arena.run(schedulers=[FOREST])
    worker = Worker(arena, run)
    body = always(1.0)
    text = manifest_of(body, 2, run.run).model_dump_json()
    other = manifest_of(body, 1, run.run).model_dump_json()
    signatures = {
        "nobody": "",
        "somebody else": signing.sign(signing.new_key(), text),
        "the trainer, for another model": signing.sign(KEY, other),
    }
    subject = subjects.model(run.run, FOREST)
    headers = {MANIFEST: text, SIGNATURE: signatures[signer]}
    await arena.stream.publish(subject, body, headers=headers)
    assert await worker.decides() == (0, -1)
    (event,) = await refusals(arena)
    assert "it is not signed by this arena's trainer" in event.message
    # Announced and looked up, the trainer's own are taken.
    body = always(0.25)
    text = manifest_of(body, 3, run.run).model_dump_json()
    signed = {MANIFEST: text, SIGNATURE: signing.sign(KEY, text)}
    await arena.stream.publish(subject, body, headers=signed)
    await worker.comes_to_decide_with(3, 0.25)


async def test_what_is_shipped_is_signed(bus: Bus) -> None:
    settings = bus.settings
    bus.settings = settings.model_copy(
        update={"model_key": SecretStr(KEY), "model_public_key": signing.public_key(KEY)}
    )
    await shipped(bus, 1, b"model")
    assert (await models.newest(bus, RUN, FOREST)) is not None
    bus.settings = settings.model_copy(update={"model_public_key": signing.public_key("01" * 32)})
    with pytest.raises(ModelRefused, match="not signed"):
        await models.newest(bus, RUN, FOREST)


class TestShelf:
    """Without a subscription, as if no announcement ever came through."""

    async def serving(self, shelf: Shelf) -> int:
        return (await shelf.decide(RUN, one_task(), ONE_TREE)).model_version

    async def test_a_missed_announcement_is_made_up_for_by_looking(
        self, bus: Bus, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shelf = Shelf(HybridMl(), bus)
        await shipped(bus, 1, always(0.25))
        assert await self.serving(shelf) == 1
        await shipped(bus, 2, always(0.5))
        assert await self.serving(shelf) == 1
        monkeypatch.setattr(learned, "LOOK_AGAIN_SECONDS", 0.0)
        assert await self.serving(shelf) == 2

    async def test_an_old_announcement_that_comes_late_changes_nothing(self, bus: Bus) -> None:
        shelf = Shelf(HybridMl(), bus)
        old = always(0.25)
        await shipped(bus, 1, old)
        await shipped(bus, 2, always(0.5))
        assert await self.serving(shelf) == 2
        said = {MANIFEST: manifest_of(old, 1).model_dump_json()}
        await shelf.on_announcement(SUBJECT, said, old)
        assert await self.serving(shelf) == 2

    async def test_announcements_of_runs_that_are_not_decided_here_are_left_alone(
        self, bus: Bus
    ) -> None:
        shelf = Shelf(HybridMl(), bus)
        for number in range(50):
            await shelf.on_announcement(f"models.stranger{number}.{FOREST}", {}, b"")
        assert shelf._places == {}
        assert (await bus.stream.stream_info(subjects.EVENTS)).state.messages == 0

    async def test_it_keeps_the_models_of_the_runs_decided_last(self, bus: Bus) -> None:
        shelf = Shelf(HybridMl(), bus)
        body = always(0.25)
        for number in range(learned.KEPT_RUNS + 3):
            run = f"run{number}"
            await models.ship(bus, manifest_of(body, 1, run), body, after=0)
            assert (await shelf.decide(run, one_task(), ONE_TREE)).model_version == 1
        assert len(shelf._places) == learned.KEPT_RUNS
        assert (await shelf.decide("run0", one_task(), ONE_TREE)).model_version == 1

    async def test_the_first_model_is_found_long_after_it_was_pushed_out(self, bus: Bus) -> None:
        shelf = Shelf(FrozenForest(), bus)
        await shipped(bus, 1, always(0.25))
        for version in range(2, subjects.KEPT_VERSIONS + 3):
            await shipped(bus, version, always(0.5))
        said = await shelf.decide(RUN, one_task(), ONE_TREE)
        assert (said.model_version, said.gpu_fraction.tolist()) == (1, [0.25])

    async def test_a_frozen_model_is_never_exchanged(
        self, bus: Bus, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(learned, "LOOK_AGAIN_SECONDS", 0.0)
        shelf = Shelf(FrozenForest(), bus)
        assert await self.serving(shelf) == 0
        for version in (1, 2, 3):
            await shipped(bus, version, always(version / 4))
            assert await self.serving(shelf) == 1
