"""How a model travels: one message with its manifest, checked by whoever takes it into service.

`models.<run>.<name>` holds the newest versions; the last message is the one in service. The first
version is kept beside them, for comparisons with what never learned again. Manifest
and model are one message, so a worker can never see one without the other, and publishing is a
compare-and-set, so a version is shipped once. The trainer signs the manifest, which has the model's
hash. Both formats (ONNX, safetensors) are data: loading them runs no code.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

import nats.js.errors
from nats.js.api import RawStreamMsg
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared import signing, subjects
from shared.bus import Bus
from shared.errors import ModelRefused, NotFound
from shared.formats import FORMATS, ModelFormat, problem

FOREST, AGENT = "hybrid_ml", "rl_agent"
LEARNERS = (FOREST, AGENT)
ORACLE = "oracle"
TEACHERS = {FOREST: ORACLE, AGENT: AGENT}  # from whose results each learns

MANIFEST, SIGNATURE = "Hybrid-Manifest", "Hybrid-Signature"


class Manifest(BaseModel):
    """What is known of a model."""

    model_config = ConfigDict(extra="ignore", frozen=True, protected_namespaces=())

    run: str
    name: str
    version: int = Field(ge=1)
    sha256: str
    format: Literal["onnx", "safetensors"]
    trained_on: int = Field(description="results (or generated tasks) it learned from")
    first_task: int = Field(default=-1, description="oldest task of that window; -1: generated")
    last_task: int = Field(default=-1, description="newest task of that window; -1: generated")
    metrics: dict[str, float] = {}
    reason: str = ""
    created_at: float = Field(default_factory=time.time)
    message_format: ModelFormat = FORMATS["model"]


class Rollback(BaseModel):
    """Asks the trainer to put an older version into service."""

    run: str
    name: str
    version: int


@dataclass(frozen=True, slots=True)
class Model:
    manifest: Manifest
    body: bytes
    sequence: int  # in MODELS


def check(manifest: Manifest, body: bytes, subject: str) -> None:
    """Refuse a model that is not the one its manifest describes."""
    if subjects.model(manifest.run, manifest.name) != subject:
        raise _refused(f"a model of {manifest.name} in {manifest.run} came on {subject}", body)
    if sha256(body).hexdigest() != manifest.sha256:
        raise _refused(f"version {manifest.version}: the hash does not match the manifest", body)


def read(
    subject: str,
    headers: dict[str, Any] | None,
    body: bytes,
    sequence: int = 0,
    *,
    public_key: str = "",
) -> Model:
    """With a public key only what its owner has signed; without, whatever is whole."""
    headers = headers or {}
    if public_key and not signing.is_signed(
        public_key, headers.get(MANIFEST, ""), headers.get(SIGNATURE, "")
    ):
        raise _refused("it is not signed by this arena's trainer", body)
    try:
        manifest = Manifest.model_validate_json(headers[MANIFEST])
    except (KeyError, ValidationError) as error:
        raise _refused(f"no readable manifest: {_reason(error)}", body) from None
    check(manifest, body, subject)
    return Model(manifest, body, sequence)


async def newest(bus: Bus, run: str, name: str) -> Model | None:
    """The model in service. Refused ones are passed over by whoever asks, not here."""
    return await _read_last(bus, subjects.model(run, name), subjects.model(run, name))


async def first(bus: Bus, run: str, name: str) -> Model | None:
    """Version 1, however long ago it was."""
    return await _read_last(bus, subjects.first_model(run, name), subjects.model(run, name))


async def _read_last(bus: Bus, place: str, subject: str) -> Model | None:
    message = await _last(bus, place)
    if message is None:
        return None
    return _read(bus, subject, message)


def _read(bus: Bus, subject: str, message: RawStreamMsg) -> Model:
    key = bus.settings.model_public_key
    body = message.data or b""
    return read(subject, message.headers, body, message.seq or 0, public_key=key)


async def last_sequence(bus: Bus, run: str, name: str) -> int:
    """The place of the newest message, readable or not; 0 if there is none."""
    message = await _last(bus, subjects.model(run, name))
    return 0 if message is None else message.seq or 0


async def _last(bus: Bus, subject: str) -> RawStreamMsg | None:
    # From the nearest server, since models are large; that there is none, only the leader can say.
    for direct in (True, False):
        with suppress(nats.js.errors.NotFoundError):
            return await bus.stream.get_last_msg(subjects.MODELS, subject, direct=direct)
    return None


async def stored(bus: Bus, run: str, name: str) -> list[Model]:
    """The versions that are still held, oldest first, without those that cannot be read."""
    subject = subjects.model(run, name)
    models: list[Model] = []
    sequence = 0
    while True:
        try:
            message = await bus.stream.get_msg(
                subjects.MODELS, seq=sequence + 1, subject=subject, direct=True, next=True
            )
        except nats.js.errors.NotFoundError:
            return models
        sequence = message.seq or 0
        with suppress(ModelRefused):
            models.append(_read(bus, subject, message))


async def version(bus: Bus, run: str, name: str, number: int) -> Model:
    for model in await stored(bus, run, name):
        if model.manifest.version == number:
            return model
    raise NotFound(f"version {number} of {name} in run {run} is not held any more, or never was")


async def ship(bus: Bus, manifest: Manifest, body: bytes, *, after: int) -> int:
    """Put a model into service behind the one at `after`; returns its place. Conflict means that
    somebody else has shipped meanwhile."""
    text = manifest.model_dump_json()
    headers = {MANIFEST: text}
    if key := bus.settings.model_key.get_secret_value():
        headers[SIGNATURE] = signing.sign(key, text)
    name = f"model.{manifest.run}.{manifest.name}"
    if manifest.version == 1:
        await bus.publish(
            subjects.first_model(manifest.run, manifest.name),
            body,
            stream=subjects.MODELS,
            message_id=f"{name}.first",
            headers=headers,
        )
    return await bus.publish(
        subjects.model(manifest.run, manifest.name),
        body,
        stream=subjects.MODELS,
        message_id=f"{name}.{manifest.version}",
        after=after,
        headers=headers,
    )


def _refused(reason: str, body: bytes) -> ModelRefused:
    return ModelRefused(reason, digest(body)[:16])


def _reason(error: KeyError | ValidationError) -> str:
    return problem(error) if isinstance(error, ValidationError) else "there is none"


def digest(body: bytes) -> str:
    return sha256(body).hexdigest()
