from __future__ import annotations

import json

import pytest

from services.gateway.analysis.ranking import Weights
from services.gateway.live.client import QUEUED_MESSAGES, Client, read_weights
from services.gateway.live.schemas import Snapshot, Update
from services.gateway.live.size_limit import MOST_BYTES, fit, notification
from shared.domain.spec import RunSpec
from shared.messages.events import Event
from tests.unit.gateway.test_race import row


def update(schedulers: int, devices: int = 5) -> Update:
    """The largest update of a run with so many schedulers: long names, long figures."""
    names = [f"scheduler_with_a_very_long_nam{number:02}" for number in range(schedulers)]
    small = ("avg_time", "avg_energy", "avg_cost", "avg_wait", "avg_turnaround", "total_time")
    large = ("total_energy", "total_cost", "makespan", "gpu_share", "vs_oracle", "score")
    figures = dict.fromkeys(small, 1.23456e-05) | dict.fromkeys(large, 123456.0)
    counts = {"tasks": 10**6, "failed": 0, "model_version": 0, "pareto": False}
    figures |= dict.fromkeys(("turnaround_p50", "turnaround_p95", "turnaround_p99"), 1.23456)
    figures |= dict.fromkeys(("avg_slowdown", "avg_idle_energy", "failed_share"), 123456.0)
    used = {f"gpu_{number}": 0.1234 for number in range(devices)}
    means = {"average_utilization": 0.5, "types": {"gpu": 0.1234}}
    return Update.model_validate(
        {
            "run": "r",
            "state": "running",
            "rate": 1.0,
            "tasks_sent": 10**6,
            "tasks_processed": 10**6,
            "rejected": 0,
            "suspended": {
                name: {"reason": "x" * 800, "batch": 1, "at": 1.0, "left_out": False}
                for name in names[:5]
            },
            "pretraining": names[:5],
            "learners": 5,
            "at": 1.0,
            "sequence": 1,
            "task": None,
            "lag": {f"tasks/scheduler-{name}": 10**6 for name in names[:5]},
            "comparison": [
                {"name": name, "rank": number, **counts, **figures}
                for number, name in enumerate(names)
            ],
            "latest_results": {name: row(1) for name in names},
            "utilization": {
                **means,
                **{device: {"utilization": share} for device, share in used.items()},
                "schedulers": {name: {**means, "devices": used} for name in names},
            },
        }
    )


def snapshot(schedulers: int, devices: int) -> Snapshot:
    note = {"at": 1.0, "kind": "run", "service": "s", "run": "r", "message": "ä" * 300}
    note |= {"level": "info", "group": "ä" * 200}
    fields = update(schedulers, devices).model_dump(exclude={"snapshot"})
    meters = [
        {"name": f"gpu_{number}", "type": "gpu", "node": "node", "devices": 1}
        for number in range(devices)
    ]
    types = [{"name": "gpu", "accelerator": True, "count": devices}]
    spec = RunSpec(name="x" * 100)
    more = {"notifications": [note] * 20, "spec": spec, "meters": meters, "types": types}
    return Snapshot.model_validate({**fields, **more})


def test_a_usual_update_is_complete() -> None:
    usual = update(8)
    assert json.loads(fit(usual)) == usual.model_dump(mode="json")


@pytest.mark.parametrize("devices", [5, 128, 256])
@pytest.mark.parametrize("schedulers", [8, 20, 30, 60])
def test_every_update_is_below_the_size(schedulers: int, devices: int) -> None:
    """The spec and the devices, which a client gets once, come on top of it."""
    for message in (update(schedulers, devices), snapshot(schedulers, devices)):
        text = fit(message)
        sent = json.loads(text)
        once = {name: sent[name] for name in ("spec", "meters", "types") if name in sent}
        assert len(text.encode()) < MOST_BYTES + len(json.dumps(once))
        assert len(sent.get("meters", [])) in (0, devices)
        assert len(sent["comparison"]) + sent["left_out"] == schedulers


def test_sixty_schedulers_keep_their_ranking_and_lose_what_is_optional() -> None:
    sent = json.loads(fit(update(60)))
    assert sent["utilization"]["schedulers"] == {}
    assert sent["latest_results"] == {}
    assert sent["comparison"][0]["rank"] == 0
    assert "total_time" not in sent["comparison"][0]
    assert sent["comparison"][0]["avg_time"] == 1.23456e-05


def test_a_few_more_lose_only_their_devices() -> None:
    sent = json.loads(fit(update(20, devices=30)))
    assert len(sent["comparison"]) == len(sent["latest_results"]) == 20
    used = sent["utilization"]["schedulers"].values()
    assert all(each == {"average_utilization": 0.5, "types": {"gpu": 0.1234}} for each in used)


def test_many_devices_leave_their_mean_and_that_of_their_type() -> None:
    sent = json.loads(fit(update(20, devices=256)))["utilization"]
    assert sent == {"average_utilization": 0.5, "types": {"gpu": 0.1234}, "schedulers": {}}


def test_a_notification_leaves_out_data_that_is_too_large() -> None:
    small = Event(kind="run", service="s", run="r", message="m", at=5, data={"a": 1})
    assert json.loads(notification(small)) == {
        "type": "notification",
        "at": 5.0,
        "kind": "run",
        "service": "s",
        "run": "r",
        "message": "m",
        "level": "info",
        "group": "run|s|r|m",
        "count": 1,
        "data": {"a": 1},
    }
    large = Event(kind="run", service="s", message="ö" * 2000, data={"a": "x" * 50_000})
    text = notification(large)
    assert "data" not in json.loads(text)
    assert len(text.encode()) < MOST_BYTES


def test_weights_are_read_and_anything_else_is_not() -> None:
    assert read_weights('{"type": "weights", "time": 0, "energy": 2, "cost": 1.5}') == Weights(
        energy=2, cost=1.5
    )
    assert read_weights('{"type": "weights", "turnaround": 3}') == Weights(turnaround=3)
    assert read_weights('{"type": "weights", "cost": 1}') == Weights(cost=1)
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


async def test_a_client_that_does_not_read_is_too_slow() -> None:
    client = Client()
    for _ in range(QUEUED_MESSAGES):
        client.offer("message")
        assert not client.too_slow.is_set()
    client.offer("one too many")
    assert client.too_slow.is_set()


async def test_only_new_weights_need_a_snapshot() -> None:
    client = Client()
    client.needs_snapshot = False
    client.receive('{"type": "weights", "turnaround": 1}')
    assert not client.needs_snapshot
    client.receive('{"type": "weights", "energy": 1}')
    assert client.needs_snapshot
    assert client.weights == Weights(energy=1)
