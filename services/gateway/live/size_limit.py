"""Keeps every message of a live feed below a size.

With many schedulers or devices an update would exceed it. Then parts are left out, in this order,
until it fits: older notifications, each scheduler's devices, utilisation by scheduler, that of each
device, the latest results, totals and further measures, and at last the schedulers at the end of
the ranking (`left_out` says how many). The spec and the devices in a snapshot are complete and do
not count: a client gets them once.
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
from shared.messages.events import Event, level_of

MOST_BYTES = 20_000
SUMMARY_CHARACTERS = 300
KEPT_NOTIFICATIONS = 5


def fit(update: Update | Snapshot) -> str:
    """An update as text, below the size for any number of schedulers."""
    left_out: dict[str, Any] = {}
    limit = MOST_BYTES + _size_of_cluster(update)
    text = update.model_dump_json()
    for part in _parts(update):
        if _size(text) < limit:
            return text
        left_out |= part
        text = update.model_dump_json(exclude=left_out)
    rows = keep = len(update.comparison)
    while _size(text) >= limit and keep:
        keep = keep * 3 // 4
        fewer = {"comparison": update.comparison[:keep], "left_out": rows - keep}
        text = update.model_copy(update=fewer).model_dump_json(exclude=left_out)
    return text


def _parts(update: Update | Snapshot) -> Iterator[dict[str, Any]]:
    """What to leave out, for `model_dump_json(exclude=...)`; each replaces the one before of the
    same field."""
    if isinstance(update, Snapshot):
        yield {"notifications": set(range(KEPT_NOTIFICATIONS, len(update.notifications)))}
    yield {"utilization": {"schedulers": {"__all__": {"devices"}}}}
    schedulers = {"schedulers": set(update.utilization.schedulers)}
    yield {"utilization": schedulers}
    yield {"utilization": schedulers | dict.fromkeys(update.utilization.model_extra or (), True)}
    yield {"latest_results": set(update.latest_results)}
    yield {"comparison": {"__all__": set(OMITTED)}}


def _size_of_cluster(update: Update | Snapshot) -> int:
    if isinstance(update, Update):
        return 0
    return _size(update.model_dump_json(include={"spec", "meters", "types"}))


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def summary(event: Event, count: int = 1) -> NotificationSummary:
    """An event as a snapshot has it."""
    shortened = {"message": event.message[:SUMMARY_CHARACTERS]}
    return NotificationSummary(**{**_fields(event, count), **shortened})


def notification(event: Event, count: int = 1) -> str:
    complete = Notification(**_fields(event, count), data=event.data)
    text = complete.model_dump_json()
    return text if _size(text) < MOST_BYTES else complete.model_dump_json(exclude={"data"})


def _fields(event: Event, count: int) -> dict[str, Any]:
    about = {name: getattr(event, name) for name in ("at", "kind", "service", "run", "message")}
    return {**about, "level": level_of(event.kind), "group": event.group, "count": count}
