"""What is learned in a run: its rules, its models, and what is told of them."""

from __future__ import annotations

import json
from typing import Any

from shared import models, subjects
from shared.batches import Batch
from shared.models import FOREST, Model
from shared.runs import RunRecord
from tests.integration.arena import Arena, eventually

FOREST_RULE = {"trees": 10}
AGENT_RULE = {"hidden": 16, "pretrain_steps": 50}


def learning(pretrain: int = 100, *, forest: Any = None, agent: Any = None) -> dict[str, Any]:
    return {
        "pretrain_tasks": pretrain,
        "forest": {**FOREST_RULE, **(forest or {})},
        "agent": {**AGENT_RULE, **(agent or {})},
    }


async def started(arena: Arena, *names: str) -> None:
    for name in names:
        await arena.start(name)


async def shipped(arena: Arena, run: RunRecord, name: str) -> list[Model]:
    return await models.stored(arena.bus, run.run, name)


async def versions(arena: Arena, run: RunRecord, name: str) -> list[int]:
    return [model.manifest.version for model in await shipped(arena, run, name)]


async def reached(arena: Arena, run: RunRecord, name: str, version: int) -> Model:
    """The newest model, once it has that version."""

    async def newest() -> Model | None:
        model = await models.newest(arena.bus, run.run, name)
        return model if model is not None and model.manifest.version >= version else None

    model: Model = await eventually(newest, f"version {version} of {name}")
    return model


async def decided(arena: Arena, run: RunRecord, name: str, tasks: int) -> list[Batch]:
    async def found() -> list[Batch] | None:
        subject = subjects.decisions(run.run, name)
        batches = await arena.batches(subjects.DECISIONS, subject)
        return batches if sum(batch.rows.num_rows for batch in batches) >= tasks else None

    batches: list[Batch] = await eventually(found, f"{tasks} decisions of {name}")
    return sorted(batches, key=lambda batch: batch.envelope.batch)


def versions_used(batches: list[Batch]) -> list[int]:
    return [n for batch in batches for n in batch.rows.column("model_version").to_pylist()]


async def told(arena: Arena, run: RunRecord) -> list[dict[str, Any]]:
    events = [json.loads(event) for event in await arena.events("model")]
    return [event for event in events if event["run"] == run.run]


async def rows(arena: Arena, run: RunRecord, name: str = FOREST) -> list[dict[str, Any]]:
    return arena.store.query(
        "SELECT * FROM models FINAL WHERE run = {run:String} AND name = {name:String} "
        "ORDER BY created_at, version",
        {"run": run.run, "name": name},
    )
