"""A model as it travels: its manifest and its bytes in one message, checked by every reader.

Manifest and model are one message, so no reader can see one without the other. The trainer signs
the manifest, which has the model's hash. Both formats (ONNX, safetensors) are data: loading them
runs no code.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.errors import ModelRefused
from shared.messages import signatures, subjects
from shared.messages.formats import FORMATS, ModelFormat, problem

MANIFEST, SIGNATURE = "Hybrid-Manifest", "Hybrid-Signature"

# The body of a version that is no model: there is nothing to learn from yet. In lockstep every
# segment needs a version, so this one is published, and the policy decides without a model.
NO_MODEL = b""


class Manifest(BaseModel):
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
    """A request to the trainer to put an older version into service."""

    run: str
    name: str
    version: int


@dataclass(frozen=True, slots=True)
class Model:
    manifest: Manifest
    body: bytes
    sequence: int  # in MODELS


def _check(manifest: Manifest, body: bytes, subject: str) -> None:
    """Raise ModelRefused if the manifest does not describe this model."""
    if subjects.model(manifest.run, manifest.name) != subject:
        raise _refused(f"a model of {manifest.name} in {manifest.run} came on {subject}", body)
    if digest(body) != manifest.sha256:
        raise _refused(f"version {manifest.version}: the hash does not match the manifest", body)


def read_model(
    subject: str,
    headers: dict[str, Any] | None,
    body: bytes,
    sequence: int = 0,
    *,
    public_key: str = "",
) -> Model:
    """With a public key, the manifest must be signed; without, no signature is needed."""
    headers = headers or {}
    if public_key and not signatures.is_signed(
        public_key, headers.get(MANIFEST, ""), headers.get(SIGNATURE, "")
    ):
        raise _refused("it is not signed by this arena's trainer", body)
    try:
        manifest = Manifest.model_validate_json(headers[MANIFEST])
    except (KeyError, ValidationError) as error:
        raise _refused(f"no readable manifest: {_reason(error)}", body) from None
    _check(manifest, body, subject)
    return Model(manifest, body, sequence)


def _refused(reason: str, body: bytes) -> ModelRefused:
    return ModelRefused(reason, digest(body)[:16])


def _reason(error: KeyError | ValidationError) -> str:
    return problem(error) if isinstance(error, ValidationError) else "there is none"


def digest(body: bytes) -> str:
    return sha256(body).hexdigest()
