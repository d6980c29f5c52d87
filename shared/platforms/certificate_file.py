"""The certificate of a platform: a JSON file beside the platform file, which names its contents.

A platform file that was changed has no certificate any more.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from shared.domain.hardware.certificate import Certificate
from shared.platforms.platform_file import PlatformFile


def platform_hash(platform: PlatformFile) -> str:
    """A hash of what simulations depend on; a new description does not change it."""
    fields = json.dumps(platform.spec_fields(), sort_keys=True)
    return hashlib.sha256(fields.encode()).hexdigest()[:16]


def certificate_path(platform: Path) -> Path:
    """`machine.certificate.json` beside `machine.yaml`."""
    return platform.with_suffix(".certificate.json")


def find_certificate(name_or_file: str, platform: PlatformFile) -> Certificate | None:
    """The certificate beside a platform file, if it is of the platform as it is now."""
    try:
        content: Any = json.loads(certificate_path(Path(name_or_file)).read_text("utf-8"))
        certificate = Certificate.model_validate(content["summary"])
    except (OSError, ValueError, KeyError, TypeError, ValidationError):
        return None
    return certificate if certificate.platform_hash == platform_hash(platform) else None
