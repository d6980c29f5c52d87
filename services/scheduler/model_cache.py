"""The models of each run that a worker decides with, in its memory.

Outside lockstep, the newest usable model. A model is replaced between batches, never within one. A
model that does not match its manifest is refused: the one in service stays, and an event is
published. Without a model the policy decides without one, and the decision has model version 0.

In lockstep a batch is decided by one version, which the worker waits for.
"""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from services.scheduler.learned_policy import LearnedClusterPolicy
from services.scheduler.loaded_policies import LoadedPolicies
from shared.bus import model_registry
from shared.bus.client import Bus
from shared.errors import ModelRefused, NotFound, Unavailable
from shared.messages import models, subjects
from shared.messages.events import MESSAGE_CHARACTERS, Event
from shared.messages.models import NO_MODEL, Model
from shared.runtime.bounded_dict import BoundedDict

# Workers subscribe to new models; polling finds those published while the connection was down.
POLL_SECONDS = 5.0
# While a worker waits for a version, it polls more often; a batch whose version does not arrive is
# redelivered later, so that other runs continue in the meantime.
VERSION_POLL_SECONDS = 0.5
VERSION_TIMEOUT_SECONDS = 20.0
CACHED_RUNS = 16
# In lockstep the trainer is at most two versions ahead of a worker.
CACHED_VERSIONS = 4


@dataclass(slots=True)
class _Entry:
    models: BoundedDict[int, Any] = field(  # by version
        default_factory=lambda: BoundedDict(CACHED_VERSIONS)
    )
    version: int = 0  # the newest; 0: no model yet
    polled_at: float = -math.inf
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, version: int, model: Any) -> None:
        self.models[version], self.version = model, max(self.version, version)
        self.arrived.set()


class ModelCache:
    def __init__(self, policies: LoadedPolicies, bus: Bus) -> None:
        self._policies = policies
        self._bus = bus
        self._entries: BoundedDict[str, _Entry] = BoundedDict(CACHED_RUNS)

    def _policy(self, run: str) -> LearnedClusterPolicy:
        policy = self._policies.of(run)
        assert isinstance(policy, LearnedClusterPolicy)
        return policy

    async def model(self, run: str) -> tuple[Any, int]:
        """The newest usable model and its version; None and 0 until the first one arrives."""
        entry = self._entry(run)
        if not (self._policy(run).frozen and entry.version):
            await self._refresh(run, entry)
        return entry.models.get(entry.version), entry.version

    async def exact_version(self, run: str, version: int) -> tuple[Any, int]:
        """That version and no other, for runs in lockstep."""
        if version == 0:
            return None, 0
        version = 1 if self._policy(run).frozen else version
        entry, deadline = self._entry(run), time.monotonic() + VERSION_TIMEOUT_SECONDS
        while version not in entry.models:
            entry.arrived.clear()
            await self._read_version(run, version)
            if version in entry.models:
                break
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"version {version} of {self._policy(run).learner} has not arrived"
                )
            with suppress(TimeoutError):
                await asyncio.wait_for(entry.arrived.wait(), VERSION_POLL_SECONDS)
        model = entry.models[version]
        return model, 0 if model is None else version

    async def _read_version(self, run: str, version: int) -> None:
        read = model_registry.read_first if version == 1 else model_registry.read_newest
        with suppress(ModelRefused, NotFound):
            model = await read(self._bus, run, self._policy(run).learner)
            if model is not None and model.manifest.version > version:
                model = await model_registry.read_version(
                    self._bus, run, self._policy(run).learner, version
                )
            if model is not None and model.manifest.version == version:
                self._entry(run).add(version, self._open(model))

    def _open(self, model: Model) -> Any:
        return (
            None
            if model.body == NO_MODEL
            else self._policy(model.manifest.run).load_model(model.body)
        )

    async def on_model(
        self, subject: str, headers: dict[str, Any], body: bytes, *, expected: bool = False
    ) -> None:
        """Handle a model that has just been published. `expected`: tasks of its run will come, so
        it is opened before the first of them, which would take longer than a batch."""
        run = subjects.run_of(subject)
        if run not in self._entries and not expected:
            return  # if a batch comes, it will load the model
        try:
            key = self._bus.settings.model_public_key
            await self._load(models.read_model(subject, headers, body, public_key=key))
        except ModelRefused as error:
            await self._refuse(run, str(error), error.digest)

    def _entry(self, run: str) -> _Entry:
        entry = self._entries[run] = self._entries.get(run) or _Entry()
        return entry

    async def _refresh(self, run: str, entry: _Entry) -> None:
        poll_due = time.monotonic() - entry.polled_at > POLL_SECONDS
        if entry.version and not poll_due:
            return
        if poll_due:
            entry.polled_at = time.monotonic()
        await self._poll(run)
        if poll_due and not entry.version and not self._policy(run).frozen:
            await self._load_older(run, entry)

    async def _load_older(self, run: str, entry: _Entry) -> None:
        """The newest model was refused: load the newest usable one before it."""
        stored = await model_registry.read_stored(self._bus, run, self._policy(run).learner)
        for model in reversed(stored):
            await self._load(model)
            if entry.version:
                break

    async def _poll(self, run: str) -> None:
        read = model_registry.read_first if self._policy(run).frozen else model_registry.read_newest
        try:
            if model := await read(self._bus, run, self._policy(run).learner):
                await self._load(model)
        except ModelRefused as error:
            await self._refuse(run, str(error), error.digest)

    async def _load(self, model: Model) -> None:
        """Put a model into service if its version is higher than the one in service."""
        manifest = model.manifest
        entry = self._entry(manifest.run)
        if entry.version >= manifest.version or (
            self._policy(manifest.run).frozen and manifest.version > 1
        ):
            return
        try:
            entry.add(manifest.version, self._open(model))
        except Exception as error:
            await self._refuse(manifest.run, f"cannot be opened: {error!r}", str(manifest.version))

    async def _refuse(self, run: str, reason: str, model_id: str) -> None:
        name = self._policy(run).learner
        note = f"a model of {name} was refused, the old one stays: {reason}"[:MESSAGE_CHARACTERS]
        await self._bus.publish_event(
            Event(kind="model_refused", service="scheduler", run=run, message=note),
            message_id=f"event.model.refused.{run}.{name}.{model_id}",
        )
