"""Dates in the columns of a trace, as seconds since 1970. A date without a zone is taken as UTC."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import numpy as np

from shared.domain.tasks import Floats

ISO = "iso"


def seconds_of(text: str, format: str) -> float:
    """NaN for no text; a ValueError if the text is no such date."""
    text = text.strip()
    if not text:
        return np.nan
    date = datetime.fromisoformat(text) if format == ISO else datetime.strptime(text, format)
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def all_seconds(texts: Iterable[str], format: str) -> Floats:
    return np.array([seconds_of(text, format) for text in texts], np.float64)
