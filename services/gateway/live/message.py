"""Messages of the live feed as text, every one below a size.

With many schedulers an update grows beyond it. Then it leaves out, in this order, until it fits:
each scheduler's devices, utilisation by scheduler, the latest results, what the averages say
already, and last the schedulers at the end of the ranking (`left_out` says how many).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from shared.events import Event

MOST_BYTES = 20_000
NOTED_CHARACTERS = 300  # of a notification in a snapshot

Message = dict[str, Any]

# Averages times tasks, so that nothing is lost.
REDUNDANT = ("total_time", "total_energy", "total_cost", "avg_turnaround")


def text_of(message: Message) -> str:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False)


def fitted(update: Message) -> str:
    """An update as text, below the size whatever the number of schedulers."""
    text = text_of(update)
    for lighter in LIGHTER:
        if _bytes(text) < MOST_BYTES:
            return text
        update = lighter(update)
        text = text_of(update)
    rows = update["comparison"]
    while _bytes(text) >= MOST_BYTES and update["comparison"]:
        keep = len(update["comparison"]) * 3 // 4
        update = {**update, "comparison": rows[:keep], "left_out": len(rows) - keep}
        text = text_of(update)
    return text


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _without_notes(update: Message) -> Message:
    return {**update, "notifications": update["notifications"][:5]} if _noted(update) else update


def _noted(update: Message) -> bool:
    return bool(update.get("notifications"))


def _without_devices(update: Message) -> Message:
    used = dict(update["utilization"])
    used["schedulers"] = {
        name: {"average_utilization": seen["average_utilization"]}
        for name, seen in used["schedulers"].items()
    }
    return {**update, "utilization": used}


def _without_utilization(update: Message) -> Message:
    return {**update, "utilization": {**update["utilization"], "schedulers": {}}}


def _without_results(update: Message) -> Message:
    return {**update, "latest_results": {}}


def _without_totals(update: Message) -> Message:
    rows = [
        {key: value for key, value in row.items() if key not in REDUNDANT}
        for row in update["comparison"]
    ]
    return {**update, "comparison": rows}


LIGHTER: tuple[Callable[[Message], Message], ...] = (
    _without_notes,
    _without_devices,
    _without_utilization,
    _without_results,
    _without_totals,
)


def note(event: Event) -> Message:
    """An event as it is shown in a snapshot."""
    return {
        "type": "notification",
        "at": event.at,
        "kind": event.kind,
        "service": event.service,
        "run": event.run,
        "message": event.message[:NOTED_CHARACTERS],
    }


def notification(event: Event) -> str:
    message = {**note(event), "message": event.message}
    whole = text_of({**message, "data": event.data})
    return whole if _bytes(whole) < MOST_BYTES else text_of(message)
