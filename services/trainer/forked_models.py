"""The models that a learner begins a fork with.

In lockstep, the fork needs the parent's version that decides the fork's first task. The bus keeps
only the newest versions of a run, and of a finished run the first and the last. Starting at the
newest of them that is not too new, the missing versions are made again from the same results, and
so are the same to the last bit. By wall clock, the fork gets the newest version that was trained on
no task of the fork.

A learner that does not continue with the parent's models is pre-trained for the fork's devices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from services.trainer.model_publisher import ModelPublisher, TrainingWindow
from shared.bus import model_registry
from shared.domain.learning.lockstep import deciding_version
from shared.domain.spec import RunSpec
from shared.messages.models import NO_MODEL, Model
from shared.messages.runs import Fork
from shared.store.client import Store
from shared.store.schema import TABLES

_COLUMNS = ", ".join(column.name for column in TABLES["models"].columns if column.name != "run")
COPY_MANIFESTS = f"""
    INSERT INTO models (run, {_COLUMNS}) SELECT {{run:String}}, {_COLUMNS} FROM models AS old FINAL
    WHERE old.run = {{parent:String}} AND name = {{name:String}} AND version < {{version:UInt32}}
"""


async def begin(
    publisher: ModelPublisher,
    store: Store,
    fork: Fork,
    spec: RunSpec,
    pretrain: Callable[[], Awaitable[None]],
) -> None:
    """Publish the first model of the fork, if there has to be one."""
    first_version = deciding_version(fork.at, spec) if spec.lockstep else 1
    if first_version == 0:
        return
    # Versions after an inherited one are made again, if those of both runs mean the same.
    counted_alike = not spec.lockstep or fork.version == first_version
    if publisher.name not in fork.learners:
        await _publish_own(publisher, spec, first_version, pretrain)
    elif (inherited := await _newest_usable(publisher, fork)) is not None:
        version = inherited.manifest.version if counted_alike else first_version
        await _publish_inherited(publisher, store, fork, inherited, version)
    elif not counted_alike:
        await _publish_own(publisher, spec, first_version, pretrain)
    elif spec.learning.pretrain_tasks:
        await pretrain()


async def _newest_usable(publisher: ModelPublisher, fork: Fork) -> Model | None:
    """The parent's newest model that is stored and is not too new; None: there is none."""
    bus, name = publisher.bus, publisher.name
    models = await model_registry.read_stored(bus, fork.run, name)
    if (first := await model_registry.read_first(bus, fork.run, name)) is not None:
        models.insert(0, first)
    usable = [model for model in models if _is_old_enough(model, fork)]
    return max(usable, key=lambda model: model.manifest.version, default=None)


def _is_old_enough(model: Model, fork: Fork) -> bool:
    if fork.version is not None:
        return model.manifest.version <= fork.version
    return model.manifest.last_task < fork.at


async def _publish_inherited(
    publisher: ModelPublisher, store: Store, fork: Fork, model: Model, version: int
) -> None:
    bus, name, run = publisher.bus, publisher.name, publisher.run
    if version > 1 and (first := await model_registry.read_first(bus, fork.run, name)) is not None:
        manifest = first.manifest.model_copy(update={"run": run})
        await model_registry.keep_first(bus, manifest, first.body)
    values = {"run": run, "parent": fork.run, "name": name, "version": version}
    await asyncio.to_thread(store.command, COPY_MANIFESTS, values)
    manifest = model.manifest
    window = TrainingWindow(manifest.trained_on, manifest.first_task, manifest.last_task)
    reason = f"version {manifest.version} of run {fork.run}: {manifest.reason}"
    publisher.begin_after(version - 1)
    await publisher.publish(model.body, window, reason, manifest.metrics)


async def _publish_own(
    publisher: ModelPublisher, spec: RunSpec, version: int, pretrain: Callable[[], Awaitable[None]]
) -> None:
    publisher.begin_after(version - 1)
    if spec.learning.pretrain_tasks:
        await pretrain()
    elif spec.lockstep:
        await publisher.publish(NO_MODEL, TrainingWindow(0), "no model yet: it is not pre-trained")
