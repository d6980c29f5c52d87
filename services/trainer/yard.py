"""Ships the models of one learner in one run, and tells about them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

import nats.errors

from services.trainer.metrics import Metrics
from shared import models
from shared.bus import Bus
from shared.events import Event
from shared.logs import logger
from shared.models import Manifest, Model

log = logger()


@dataclass(frozen=True, slots=True)
class Window:
    """What a model has learned from: so many results, from one task to another."""

    count: int
    first: int = -1  # -1: generated tasks
    last: int = -1


@dataclass(frozen=True, slots=True)
class Shipped:
    """The model in service, as the trainer knows it."""

    version: int = 0
    sequence: int = 0
    body: bytes | None = None


class Yard:
    def __init__(
        self,
        bus: Bus,
        run: str,
        name: str,
        kind: Literal["onnx", "safetensors"],
        metrics: Metrics,
    ) -> None:
        self._bus = bus
        self._metrics = metrics
        self.run = run
        self.name = name
        self._kind = kind
        self.in_service = Shipped()
        self._newest: Manifest | None = None

    async def load(self, opens: Callable[[bytes], object]) -> None:
        """Find the newest model that can be opened. Workers refuse the others as well."""
        last = await models.last_sequence(self._bus, self.run, self.name)
        version, body = 0, None
        held = await models.stored(self._bus, self.run, self.name)
        self._newest = held[-1].manifest if held else None
        for model in reversed(held):
            version = max(version, model.manifest.version)
            try:
                opens(model.body)
            except Exception as error:
                log.warning("a model is passed over", name=self.name, error=repr(error))
                continue
            body = model.body
            break
        self.in_service = Shipped(version, last, body)

    async def ship(
        self, body: bytes, window: Window, reason: str, metrics: dict[str, float] | None = None
    ) -> None:
        manifest = self._manifest(body, window, reason, metrics or {})
        try:
            sequence = await models.ship(self._bus, manifest, body, after=self.in_service.sequence)
        except nats.errors.MaxPayloadError:
            size = f"{len(body) / 1e6:.1f} MB is more than NATS takes in one message"
            too_large = manifest.model_copy(update={"reason": f"{size} ({manifest.reason})"})
            await self._tell(too_large, shipped=False)
            return
        self.in_service = Shipped(manifest.version, sequence, body)
        await self._tell(manifest, shipped=True)

    async def tell_of_newest(self, is_known: Callable[[int], Awaitable[bool]]) -> None:
        """A trainer may have died after it had shipped a model and before it had told of it."""
        if self._newest is not None and not await is_known(self._newest.version):
            await self._tell(self._newest, shipped=True)

    async def pass_over(
        self, body: bytes, window: Window, reason: str, metrics: dict[str, float]
    ) -> None:
        """A challenger that does not ship is told about all the same."""
        await self._tell(self._manifest(body, window, reason, metrics), shipped=False)

    async def roll_back(self, number: int) -> Model:
        """Put an older version into service again, as a new version: versions only rise."""
        old = await models.version(self._bus, self.run, self.name, number)
        manifest = old.manifest.model_copy(
            update={
                "version": self.in_service.version + 1,
                "reason": f"rolled back to version {number}",
                "created_at": time.time(),
            }
        )
        sequence = await models.ship(self._bus, manifest, old.body, after=self.in_service.sequence)
        self.in_service = Shipped(manifest.version, sequence, old.body)
        await self._tell(manifest, shipped=True)
        return Model(manifest, old.body, sequence)

    def _manifest(
        self, body: bytes, window: Window, reason: str, metrics: dict[str, float]
    ) -> Manifest:
        return Manifest(
            run=self.run,
            name=self.name,
            version=self.in_service.version + 1,
            sha256=models.digest(body),
            format=self._kind,
            trained_on=window.count,
            first_task=window.first,
            last_task=window.last,
            metrics=metrics,
            reason=reason,
        )

    async def _tell(self, manifest: Manifest, shipped: bool) -> None:
        done = "shipped" if shipped else "kept back"
        self._metrics.models.labels(self.name, done).inc()
        event = Event(
            kind="model",
            service=self._bus.service,
            run=self.run,
            at=manifest.created_at,
            message=f"{self.name} version {manifest.version} {done}: {manifest.reason}",
            data={"manifest": manifest.model_dump(), "shipped": shipped},
        )
        unique = f"{self.run}.{self.name}.{manifest.version}.{done}.{manifest.created_at}"
        await self._bus.tell(event, message_id=f"event.model.{unique}")
