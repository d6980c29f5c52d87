"""Publishes models without a trainer."""

from __future__ import annotations

import hashlib

from shared.bus import model_registry
from shared.bus.client import Bus
from shared.domain.schedulers import FOREST
from shared.messages import subjects
from shared.messages.models import Manifest

RUN = "r1"
SUBJECT = f"models.{RUN}.{FOREST}"


def manifest_of(body: bytes, version: int, run: str = RUN, name: str = FOREST) -> Manifest:
    digest = hashlib.sha256(body).hexdigest()
    return Manifest(
        run=run, name=name, version=version, sha256=digest, format="onnx", trained_on=10
    )


async def publish_model(bus: Bus, version: int, body: bytes, run: str = RUN) -> int:
    """Publish a model after the newest one."""
    info = await bus.jetstream.stream_info(subjects.MODELS)
    newest = await model_registry.read_newest(bus, run, FOREST) if info.state.messages else None
    after = newest.sequence if newest else 0
    return await model_registry.ship(bus, manifest_of(body, version, run), body, after=after)
