"""Models on the bus: read one, or have the trainer publish an older version again."""

from __future__ import annotations

import json
import re

import nats.errors

from shared.bus import model_registry
from shared.bus.client import Bus
from shared.domain.schedulers import SCHEDULER_NAME
from shared.errors import NotAllowed, NotFound, Unavailable
from shared.messages import subjects
from shared.messages.models import Manifest, Model, Rollback

ROLLBACK_SECONDS = 10.0


async def read(bus: Bus, run: str, name: str, version: int | None) -> Model:
    """A model that the bus still holds; without a version the newest."""
    _check(run, name)
    if version is not None:
        return await model_registry.read_version(bus, run, name, version)
    newest = await model_registry.read_newest(bus, run, name)
    if newest is None:
        raise NotFound(f"no model of {name} in run {run}")
    return newest


async def roll_back(bus: Bus, run: str, name: str, version: int) -> Manifest:
    """Request a rollback from the trainer, the only service that publishes models."""
    _check(run, name)
    request = Rollback(run=run, name=name, version=version).model_dump_json().encode()
    try:
        reply = await bus.broker.request(request, subjects.ROLLBACK, timeout=ROLLBACK_SECONDS)
    except (nats.errors.NoRespondersError, TimeoutError):
        raise Unavailable(
            "no trainer answers, and only a trainer publishes models: start one"
        ) from None
    body = json.loads(reply.body)
    if "error" in body:
        await read(bus, run, name, version)  # raises NotFound if that is the reason
        raise NotAllowed(body["error"])
    return Manifest.model_validate(body)


def _check(run: str, name: str) -> None:
    """Both become tokens of a subject, where some characters are wildcards."""
    if not subjects.RUN_ID.fullmatch(run):
        raise NotFound(f"no run {run!r}")
    if not re.fullmatch(SCHEDULER_NAME, name):
        raise NotFound(f"no learner {name!r}")
