"""Policies that decide with a model, and the shelf that keeps the newest model of every run.

A model is swapped between batches, never within one. One that is not what its manifest says is
refused: the old one stays in service and an event says so. Before any model has arrived the rule
of `greedy` decides, and the decision says so by model version 0.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from services.scheduler.policy import Policy
from shared import models
from shared.bus import Bus
from shared.errors import ModelRefused
from shared.events import Event
from shared.models import Model
from shared.spec import RunSpec
from shared.tasks import Decisions, Tasks

# Models are announced as they are shipped; this often the bus is asked as well, in case an
# announcement was missed while the connection was down.
LOOK_AGAIN_SECONDS = 5.0
KEPT_RUNS = 16


class LearnedPolicy(Policy):
    """A policy with a model. Subclasses say which learner's, how to open it and how to use it."""

    learner: ClassVar[str]
    frozen: ClassVar[bool] = False  # the first model for ever, for comparisons

    @abstractmethod
    def open(self, body: bytes) -> Any:
        """Make a shipped model ready for use. Must run no code that comes with it."""

    @abstractmethod
    def decide_with(self, model: Any, tasks: Tasks, spec: RunSpec) -> Decisions:
        """One decision per task."""

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        """Without a model: the rule of `greedy`."""
        return Decisions(gpu_fraction=tasks.compute_intensity)


@dataclass(frozen=True, slots=True)
class Opened:
    model: Any
    version: int


@dataclass(slots=True)
class _Place:
    opened: Opened | None = None
    looked_at: float = -math.inf


class Shelf:
    def __init__(self, policy: LearnedPolicy, bus: Bus) -> None:
        self._policy = policy
        self._bus = bus
        self._places: OrderedDict[str, _Place] = OrderedDict()

    async def decide(self, run: str, tasks: Tasks, spec: RunSpec) -> Decisions:
        opened = await self.newest(run)
        if opened is None:
            return self._policy.decide(tasks, spec)
        said = self._policy.decide_with(opened.model, tasks, spec)
        return replace(said, model_version=opened.version)

    async def newest(self, run: str) -> Opened | None:
        place = self._place(run)
        if self._policy.frozen and place.opened is not None:
            return place.opened
        due = time.monotonic() - place.looked_at > LOOK_AGAIN_SECONDS
        if due:
            place.looked_at = time.monotonic()
        if due or place.opened is None:
            await self._look(run)
        if due and place.opened is None and not self._policy.frozen:
            # The newest was refused: one before it.
            for model in reversed(await models.stored(self._bus, run, self._policy.learner)):
                await self.take(model)
                if place.opened is not None:
                    break
        return place.opened

    async def _look(self, run: str) -> None:
        find = models.first if self._policy.frozen else models.newest
        try:
            if model := await find(self._bus, run, self._policy.learner):
                await self.take(model)
        except ModelRefused as error:
            await self._refuse(run, str(error), error.which)

    def _place(self, run: str) -> _Place:
        place = self._places.setdefault(run, _Place())
        self._places.move_to_end(run)
        if len(self._places) > KEPT_RUNS:
            self._places.popitem(last=False)
        return place

    async def take(self, model: Model) -> None:
        """Put a model into service if it is newer than the one that is: versions only rise."""
        manifest = model.manifest
        place = self._place(manifest.run)
        if self._policy.frozen and manifest.version > 1:
            return
        if place.opened is not None and place.opened.version >= manifest.version:
            return
        try:
            place.opened = Opened(self._policy.open(model.body), manifest.version)
        except Exception as error:
            await self._refuse(manifest.run, f"cannot be opened: {error!r}", str(manifest.version))

    async def _refuse(self, run: str, reason: str, which: str) -> None:
        name = self._policy.learner
        note = f"a model of {name} was refused, the old one stays: {reason}"
        await self._bus.tell(
            Event(kind="model_refused", service="scheduler", run=run, message=note[:2000]),
            message_id=f"event.model.refused.{run}.{name}.{which}",
        )

    async def on_announcement(self, subject: str, headers: dict[str, Any], body: bytes) -> None:
        run = subject.split(".")[1]
        if run not in self._places:
            return  # nothing of that run was decided here yet; the first batch will ask
        try:
            key = self._bus.settings.model_public_key
            await self.take(models.read(subject, headers, body, public_key=key))
        except ModelRefused as error:
            await self._refuse(run, str(error), error.which)
