"""Learning specs, and the models, decisions and events of a run."""

from __future__ import annotations

import json
from typing import Any

from shared.bus import model_registry
from shared.domain.schedulers import FOREST
from shared.messages import subjects
from shared.messages.batches import Batch
from shared.messages.models import Model
from shared.messages.runs import RunRecord
from tests.integration.arena import Arena, eventually

FOREST_RULE = {"trees": 10}
AGENT_RULE = {"hidden": 16, "pretrain_steps": 50}


def learning(pretrain: int = 100, *, forest: Any = None, agent: Any = None) -> dict[str, Any]:
    return {
        "pretrain_tasks": pretrain,
        "sync": "free",
        "forest": {**FOREST_RULE, **(forest or {})},
        "agent": {**AGENT_RULE, **(agent or {})},
    }


async def start(arena: Arena, *names: str) -> None:
    for name in names:
        await arena.start(name)


async def stored_models(arena: Arena, run: RunRecord, name: str) -> list[Model]:
    return await model_registry.read_stored(arena.bus, run.run, name)


async def versions(arena: Arena, run: RunRecord, name: str) -> list[int]:
    return [model.manifest.version for model in await stored_models(arena, run, name)]


async def wait_for_version(arena: Arena, run: RunRecord, name: str, version: int) -> Model:
    """The newest model, once it has that version."""
    model: Model = await eventually(
        lambda: model_registry.read_newest(arena.bus, run.run, name),
        f"version {version} of {name}",
        accept=lambda model: model is not None and model.manifest.version >= version,
    )
    return model


async def wait_for_decisions(arena: Arena, run: RunRecord, name: str, tasks: int) -> list[Batch]:
    batches: list[Batch] = await eventually(
        lambda: arena.batches(subjects.DECISIONS, subjects.decisions(run.run, name)),
        f"{tasks} decisions of {name}",
        accept=lambda batches: sum(batch.rows.num_rows for batch in batches) >= tasks,
    )
    return sorted(batches, key=lambda batch: batch.envelope.batch)


def versions_used(batches: list[Batch]) -> list[int]:
    return [n for batch in batches for n in batch.rows.column("model_version").to_pylist()]


async def model_events(arena: Arena, run: RunRecord) -> list[dict[str, Any]]:
    events = [json.loads(event) for event in await arena.events("model")]
    return [event for event in events if event["run"] == run.run]


async def model_rows(arena: Arena, run: RunRecord, name: str = FOREST) -> list[dict[str, Any]]:
    return arena.store.query(
        "SELECT * FROM models FINAL WHERE run = {run:String} AND name = {name:String} "
        "ORDER BY created_at, version",
        {"run": run.run, "name": name},
    )
