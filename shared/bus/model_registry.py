"""The model registry: `models.<run>.<name>` holds the newest versions of each model.

The last message is the version in service; version 1 is kept beside it, for comparisons with a
model that was never retrained. Publishing is a compare-and-set, so a version is shipped once.
"""

from __future__ import annotations

from contextlib import suppress

import nats.js.errors
from nats.js.api import RawStreamMsg

from shared.bus.client import Bus
from shared.errors import ModelRefused, NotFound
from shared.messages import signatures, subjects
from shared.messages.models import MANIFEST, SIGNATURE, Manifest, Model, read_model
from shared.messages.runs import RunRecord


async def read_newest(bus: Bus, run: str, name: str) -> Model | None:
    """The model in service. Raises ModelRefused if it cannot be used."""
    return await _read_last(bus, subjects.model(run, name), subjects.model(run, name))


async def read_first(bus: Bus, run: str, name: str) -> Model | None:
    """Version 1, however long ago it was."""
    return await _read_last(bus, subjects.first_model(run, name), subjects.model(run, name))


async def _read_last(bus: Bus, stored_subject: str, manifest_subject: str) -> Model | None:
    message = await _last(bus, stored_subject)
    if message is None:
        return None
    return _read(bus, manifest_subject, message)


def _read(bus: Bus, manifest_subject: str, message: RawStreamMsg) -> Model:
    key = bus.settings.model_public_key
    body = message.data or b""
    return read_model(manifest_subject, message.headers, body, message.seq or 0, public_key=key)


async def last_sequence(bus: Bus, run: str, name: str) -> int:
    """The sequence of the newest message, readable or not; 0 if there is none."""
    message = await _last(bus, subjects.model(run, name))
    return 0 if message is None else message.seq or 0


async def _last(bus: Bus, subject: str) -> RawStreamMsg | None:
    # Read from the nearest server, since models are large; only the leader knows if there is none.
    for direct in (True, False):
        with suppress(nats.js.errors.NotFoundError):
            return await bus.jetstream.get_last_msg(subjects.MODELS, subject, direct=direct)
    return None


async def read_stored(bus: Bus, run: str, name: str) -> list[Model]:
    """The versions that the stream still has, oldest first, without unreadable ones."""
    subject = subjects.model(run, name)
    models: list[Model] = []
    sequence = 0
    while True:
        try:
            message = await bus.jetstream.get_msg(
                subjects.MODELS, seq=sequence + 1, subject=subject, direct=True, next=True
            )
        except nats.js.errors.NotFoundError:
            return models
        sequence = message.seq or 0
        with suppress(ModelRefused):
            models.append(_read(bus, subject, message))


async def read_version(bus: Bus, run: str, name: str, number: int) -> Model:
    for model in await read_stored(bus, run, name):
        if model.manifest.version == number:
            return model
    raise NotFound(f"version {number} of {name} in run {run} is not stored (any more)")


async def ship(bus: Bus, manifest: Manifest, body: bytes, *, after: int) -> int:
    """Put a model into service after the one at sequence `after`; returns its sequence. Conflict
    means that another trainer has shipped one meanwhile."""
    if manifest.version == 1:
        await keep_first(bus, manifest, body)
    return await bus.publish(
        subjects.model(manifest.run, manifest.name),
        body,
        stream=subjects.MODELS,
        message_id=f"model.{manifest.run}.{manifest.name}.{manifest.version}",
        after=after,
        headers=_signed(bus, manifest),
    )


async def keep_first(bus: Bus, manifest: Manifest, body: bytes) -> None:
    """The second copy of version 1, which newer versions never replace."""
    await bus.publish(
        subjects.first_model(manifest.run, manifest.name),
        body,
        stream=subjects.MODELS,
        message_id=f"model.{manifest.run}.{manifest.name}.first",
        headers=_signed(bus, manifest),
    )


def _signed(bus: Bus, manifest: Manifest) -> dict[str, str]:
    text = manifest.model_dump_json()
    headers = {MANIFEST: text}
    if key := bus.settings.model_key.get_secret_value():
        headers[SIGNATURE] = signatures.sign(key, text)
    return headers


async def learners_without_model(bus: Bus, record: RunRecord) -> list[str]:
    """The learners of this run that have not been pre-trained yet, unless they are suspended."""
    run = record.run
    learners = [name for name in record.learning_schedulers if name in record.competing]
    if not learners or record.spec.learning.pretrain_tasks == 0:
        return []
    info = await bus.jetstream.stream_info(
        subjects.MODELS, subjects_filter=subjects.model(run, "*")
    )
    stored = info.state.subjects or {}
    return [name for name in learners if subjects.model(run, name) not in stored]
