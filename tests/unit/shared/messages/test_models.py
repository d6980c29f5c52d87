"""A model is taken only as the one that its manifest describes."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from shared.errors import ModelRefused
from shared.messages import models
from shared.messages.models import MANIFEST

BODY = b"a forest"
SUBJECT = "models.r1.hybrid_ml"


def said(**changes: Any) -> dict[str, Any]:
    """A manifest of BODY, as plain data."""
    return {
        "run": "r1",
        "name": "hybrid_ml",
        "version": 3,
        "sha256": hashlib.sha256(BODY).hexdigest(),
        "format": "onnx",
        "trained_on": 950,
        **changes,
    }


def headers(**changes: Any) -> dict[str, str]:
    return {MANIFEST: json.dumps(said(**changes))}


def reason(subject: str, given: dict[str, Any] | None, body: bytes) -> str:
    with pytest.raises(ModelRefused) as refused:
        models.read_model(subject, given, body)
    return str(refused.value)


def test_a_model_that_matches_its_manifest_is_taken() -> None:
    model = models.read_model(SUBJECT, headers(metrics={"score": 1.02}), BODY, 17)
    assert (model.body, model.sequence) == (BODY, 17)
    assert (model.manifest.version, model.manifest.trained_on) == (3, 950)
    assert model.manifest.metrics == {"score": 1.02}


def test_a_manifest_of_a_later_program_may_say_more() -> None:
    model = models.read_model(SUBJECT, headers(invented_later=[1, 2]), BODY)
    assert model.manifest.version == 3


@pytest.mark.parametrize("body", [b"", b"a Forest", BODY + b"\0", BODY[:-1]])
def test_another_body_is_refused(body: bytes) -> None:
    assert reason(SUBJECT, headers(), body) == ("version 3: the hash does not match the manifest")


@pytest.mark.parametrize(
    "subject", ["models.r2.hybrid_ml", "models.r1.rl_agent", "models.r1.hybrid_ml.more"]
)
def test_a_model_on_the_subject_of_another_is_refused(subject: str) -> None:
    assert reason(subject, headers(), BODY) == (f"a model of hybrid_ml in r1 came on {subject}")


@pytest.mark.parametrize(
    "given",
    [
        None,
        {},
        {"hybrid-manifest": json.dumps(said())},
        {MANIFEST: ""},
        {MANIFEST: "garbage"},
        {MANIFEST: "[]"},
        {MANIFEST: "{}"},
        headers(version=0),
        headers(version="three"),
        headers(format="pickle"),
        headers(sha256=None),
        headers(run=7),
        headers(metrics={"score": "good"}),
    ],
)
def test_a_manifest_that_cannot_be_read_is_refused(given: dict[str, Any] | None) -> None:
    assert reason(SUBJECT, given, BODY).startswith("no readable manifest: ")


def test_the_digest_is_sha_256_in_hexadecimal() -> None:
    # The example of FIPS 180-2, appendix B.1.
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert models.digest(b"abc") == expected
