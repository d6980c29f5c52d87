"""Publishes one learner's models of one run, with an event for each."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import nats.errors

from services.trainer.metrics import Metrics
from shared.bus import model_registry
from shared.bus.client import Bus
from shared.messages import models
from shared.messages.events import Event
from shared.messages.models import NO_MODEL, Manifest, Model
from shared.runtime.logs import logger

log = logger()


@dataclass(frozen=True, slots=True)
class TrainingWindow:
    """The results that a model was trained on."""

    count: int
    first_task: int = -1  # -1: generated tasks
    last_task: int = -1


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """The model in service."""

    version: int = 0
    sequence: int = 0
    body: bytes | None = None


class ModelPublisher:
    def __init__(
        self,
        bus: Bus,
        run: str,
        name: str,
        model_format: Literal["onnx", "safetensors"],
        metrics: Metrics,
    ) -> None:
        self.bus = bus
        self._metrics = metrics
        self.run = run
        self.name = name
        self._format = model_format
        self.in_service = PublishedModel()
        self.newest: Manifest | None = None  # when loaded; perhaps not usable

    async def load(self, open_model: Callable[[bytes], object]) -> None:
        """Find the newest model that `open_model` accepts; workers refuse the others too."""
        last = await model_registry.last_sequence(self.bus, self.run, self.name)
        version, body = 0, None
        stored = await model_registry.read_stored(self.bus, self.run, self.name)
        if stored:  # perhaps by another trainer, after `last` was read
            last = max(last, stored[-1].sequence)
        self.newest = stored[-1].manifest if stored else None
        for model in reversed(stored):
            version = max(version, model.manifest.version)
            if model.body == NO_MODEL:
                break
            try:
                open_model(model.body)
            except Exception as error:
                log.warning("unusable model is skipped", name=self.name, error=repr(error))
                continue
            body = model.body
            break
        self.in_service = PublishedModel(version, last, body)

    def begin_after(self, version: int) -> None:
        """Publish the version after this one next: the first one of a fork."""
        self.in_service = PublishedModel(version, self.in_service.sequence)

    async def publish(
        self,
        body: bytes,
        window: TrainingWindow,
        reason: str,
        metrics: dict[str, float] | None = None,
    ) -> None:
        manifest = self._manifest(body, window, reason, metrics or {})
        try:
            await self._put_into_service(manifest, body)
        except nats.errors.MaxPayloadError:
            size = f"{len(body) / 1e6:.1f} MB is more than NATS takes in one message"
            too_large = manifest.model_copy(update={"reason": f"{size} ({manifest.reason})"})
            await self.publish_event(too_large, shipped=False)

    async def keep_back(
        self, body: bytes, window: TrainingWindow, reason: str, metrics: dict[str, float]
    ) -> None:
        """Publish only the event of a challenger that is worse than the model in service."""
        await self.publish_event(self._manifest(body, window, reason, metrics), shipped=False)

    async def roll_back(self, version: int) -> Model:
        """Publish an older version again, as a new version: versions only rise."""
        old = await model_registry.read_version(self.bus, self.run, self.name, version)
        manifest = old.manifest.model_copy(
            update={
                "version": self.in_service.version + 1,
                "reason": f"rolled back to version {version}",
                "created_at": time.time(),
            }
        )
        await self._put_into_service(manifest, old.body)
        return Model(manifest, old.body, self.in_service.sequence)

    async def _put_into_service(self, manifest: Manifest, body: bytes) -> None:
        sequence = await model_registry.ship(
            self.bus, manifest, body, after=self.in_service.sequence
        )
        self.in_service = PublishedModel(manifest.version, sequence, body or None)
        await self.publish_event(manifest, shipped=True)

    def _manifest(
        self, body: bytes, window: TrainingWindow, reason: str, metrics: dict[str, float]
    ) -> Manifest:
        return Manifest(
            run=self.run,
            name=self.name,
            version=self.in_service.version + 1,
            sha256=models.digest(body),
            format=self._format,
            trained_on=window.count,
            first_task=window.first_task,
            last_task=window.last_task,
            metrics=metrics,
            reason=reason,
        )

    async def publish_event(self, manifest: Manifest, shipped: bool) -> None:
        outcome = "shipped" if shipped else "kept back"
        self._metrics.models.labels(self.name, outcome).inc()
        event = Event(
            kind="model",
            service=self.bus.service,
            run=self.run,
            at=manifest.created_at,
            message=f"{self.name} version {manifest.version} {outcome}: {manifest.reason}",
            data={"manifest": manifest.model_dump(), "shipped": shipped},
        )
        unique = f"{self.run}.{self.name}.{manifest.version}.{outcome}.{manifest.created_at}"
        await self.bus.publish_event(event, message_id=f"event.model.{unique}")
