"""Keeps every message of a live feed below a size.

With many schedulers an update would exceed it. Then parts are left out, in this order, until it
fits: older notifications, each scheduler's devices, utilisation by scheduler, the latest results,
totals (the averages and the number of tasks give them), and at last the schedulers at the end of
the ranking (`left_out` says how many).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from services.gateway.live.schemas import (
    OMITTED,
    Notification,
    NotificationSummary,
    Snapshot,
    Update,
)
from shared.messages.events import Event

MOST_BYTES = 20_000
SUMMARY_CHARACTERS = 300
KEPT_NOTIFICATIONS = 5


def fit(update: Update | Snapshot) -> str:
    """An update as text, below the size for any number of schedulers."""
    left_out: dict[str, Any] = {}
    text = update.model_dump_json()
    for part in _parts(update):
        if _size(text) < MOST_BYTES:
            return text
        left_out |= part
        text = update.model_dump_json(exclude=left_out)
    rows = keep = len(update.comparison)
    while _size(text) >= MOST_BYTES and keep:
        keep = keep * 3 // 4
        fewer = {"comparison": update.comparison[:keep], "left_out": rows - keep}
        text = update.model_copy(update=fewer).model_dump_json(exclude=left_out)
    return text


def _parts(update: Update | Snapshot) -> Iterator[dict[str, Any]]:
    """What to leave out, for `model_dump_json(exclude=...)`."""
    if isinstance(update, Snapshot):
        yield {"notifications": set(range(KEPT_NOTIFICATIONS, len(update.notifications)))}
    yield {"utilization": {"schedulers": {"__all__": {"devices"}}}}
    yield {"utilization": {"schedulers": set(update.utilization.schedulers)}}
    yield {"latest_results": set(update.latest_results)}
    yield {"comparison": {"__all__": set(OMITTED)}}


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def summary(event: Event) -> NotificationSummary:
    """An event as a snapshot has it."""
    return NotificationSummary(**{**dict(event), "message": event.message[:SUMMARY_CHARACTERS]})


def notification(event: Event) -> str:
    complete = Notification(**dict(event))
    text = complete.model_dump_json()
    return text if _size(text) < MOST_BYTES else complete.model_dump_json(exclude={"data"})
