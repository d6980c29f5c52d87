from __future__ import annotations

import json
from typing import Any

import pytest

from services.gateway.live.client import KEPT_MESSAGES, Client, read_weights
from services.gateway.live.message import MOST_BYTES, fitted, notification
from services.gateway.ranking import Weights
from shared.events import Event
from tests.unit.gateway.test_race import row


def update(schedulers: int, devices: int = 5, **fields: Any) -> dict[str, Any]:
    """The largest that a run of so many schedulers brings: long names, long figures."""
    names = [f"scheduler_with_a_very_long_nam{number:02}" for number in range(schedulers)]
    rows = []
    for number, name in enumerate(names):
        figures = dict.fromkeys(
            ("avg_time", "avg_energy", "avg_cost", "avg_wait", "avg_turnaround", "total_time"),
            1.23456e-05,
        )
        figures |= dict.fromkeys(
            ("total_energy", "total_cost", "makespan", "gpu_share", "vs_oracle", "score"), 123456.0
        )
        rows.append({"name": name, "tasks": 10**6, "rank": number, "pareto": False, **figures})
    used = {f"gpu_{number}": 0.1234 for number in range(devices)}
    return {
        "type": "simulation_update",
        "lag": {f"tasks/scheduler-{name}": 10**6 for name in names[:5]},
        "comparison": rows,
        "latest_results": {name: row(1) for name in names},
        "utilization": {
            "average_utilization": 0.5,
            **{device: {"utilization": share} for device, share in used.items()},
            "schedulers": {name: {"average_utilization": 0.5, "devices": used} for name in names},
        },
        **fields,
    }


def test_a_usual_update_is_whole() -> None:
    given = update(8)
    assert json.loads(fitted(given)) == given


@pytest.mark.parametrize("devices", [5, 128])
@pytest.mark.parametrize("schedulers", [8, 20, 30, 60])
def test_every_update_is_below_the_size(schedulers: int, devices: int) -> None:
    notes = [{"message": "ä" * 300} for _ in range(20)]
    for fields in ({}, {"notifications": notes, "spec": {"name": "x" * 5000}}):
        text = fitted(update(schedulers, devices, **fields))
        assert len(text.encode()) < MOST_BYTES
        said = json.loads(text)
        assert len(said["comparison"]) + said.get("left_out", 0) == schedulers


def test_sixty_schedulers_keep_their_ranking_and_lose_what_is_optional() -> None:
    said = json.loads(fitted(update(60)))
    assert said["utilization"]["schedulers"] == {}
    assert said["latest_results"] == {}
    assert said["comparison"][0]["rank"] == 0
    assert "total_time" not in said["comparison"][0]
    assert said["comparison"][0]["avg_time"] == 1.23456e-05


def test_a_few_more_lose_only_their_devices() -> None:
    said = json.loads(fitted(update(20, devices=30)))
    assert len(said["comparison"]) == len(said["latest_results"]) == 20
    assert all(seen == {"average_utilization": 0.5}
               for seen in said["utilization"]["schedulers"].values())  # fmt: skip


def test_a_notification_leaves_out_data_that_is_too_large() -> None:
    small = Event(kind="run", service="s", run="r", message="m", at=5, data={"a": 1})
    assert json.loads(notification(small)) == {
        "type": "notification",
        "at": 5.0,
        "kind": "run",
        "service": "s",
        "run": "r",
        "message": "m",
        "data": {"a": 1},
    }
    large = Event(kind="run", service="s", message="ö" * 2000, data={"a": "x" * 50_000})
    text = notification(large)
    assert "data" not in json.loads(text)
    assert len(text.encode()) < MOST_BYTES


def test_weights_are_read_and_anything_else_is_not() -> None:
    assert read_weights('{"type": "weights", "time": 0, "energy": 2, "cost": 1.5}') == Weights(
        0, 2, 1.5
    )
    assert read_weights('{"type": "weights", "cost": 1}') == Weights(0, 0, 1)
    for text in (
        "",
        "no json",
        "[]",
        "7",
        "null",
        "[" * 900,
        '{"type": "weights"}',
        '{"type": "other", "time": 1}',
        '{"type": "weights", "time": -1, "cost": 5}',
        '{"type": "weights", "time": 101}',
        '{"type": "weights", "time": NaN}',
        '{"type": "weights", "time": 1e999}',
        '{"type": "weights", "time": "much"}',
        '{"type": "weights", "time": [1]}',
        '{"type": "weights", "time": 1, "x": "' + "y" * 2000 + '"}',
    ):
        assert read_weights(text) is None, text


async def test_a_client_that_does_not_read_is_marked() -> None:
    client = Client()
    for _ in range(KEPT_MESSAGES):
        client.offer("message")
        assert not client.overrun.is_set()
    client.offer("one too many")
    assert client.overrun.is_set()


async def test_new_weights_owe_a_snapshot_and_the_same_ones_do_not() -> None:
    client = Client()
    client.fresh = False
    client.hear('{"type": "weights", "time": 1}')
    assert not client.fresh
    client.hear('{"type": "weights", "energy": 1}')
    assert client.fresh
    assert client.weights == Weights(0, 1, 0)
