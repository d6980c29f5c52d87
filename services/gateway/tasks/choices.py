"""Why a scheduler chose the devices of a task: the scores that it compared, and its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from services.gateway.analysis.device_work import Work, work_queued
from services.gateway.models.queries import published_model
from services.gateway.models.schemas import StoredModel
from services.gateway.tasks import queries
from services.gateway.tasks.arrival_queues import chosen_devices, queued_seconds
from services.gateway.tasks.detail import as_tasks
from services.gateway.tasks.schemas import Choice, Choices, ComparedDevice, Task
from shared.domain import times
from shared.domain.learning.price_search import IMPOSSIBLE
from shared.domain.spec import RunSpec
from shared.domain.tasks import Bools, Floats
from shared.store.client import Store

# With more devices, only the best ones and the chosen ones are listed.
MOST_LISTED = 10
# Relative to the worst score: a policy may round its scores before it compares them.
ROUNDING = 1e-5


def choices(store: Store, run: str, spec: RunSpec, task_id: int) -> Choices:
    """The choices of all schedulers that say what they compared."""
    rows = queries.results_of_task(store, run, spec.schedulers, task_id)
    task = Task.model_validate(next(iter(rows.values())))
    expected = times.seconds(as_tasks(task), spec)[0]
    entries = []
    for name, row in rows.items():
        if len(row["scores"]) != len(spec.platform):
            continue
        work = work_queued(store, run, name, spec.platform, row["arrival_time"], task_id)
        model = published_model(store, run, name, row["model_version"])
        entries.append(choice_of(row, spec, expected, work, model))
    return Choices(run=run, task_id=task_id, choices=entries)


def choice_of(
    row: Mapping[str, Any],
    spec: RunSpec,
    expected: Floats,
    work: Work,
    model: dict[str, Any] | None,
) -> Choice:
    """`expected` are the platform's seconds on every type, `work` what earlier tasks had left to do
    when this one arrived."""
    platform = spec.platform
    scores = np.array([np.inf if score is None else score for score in row["scores"]])
    scores[~(scores < IMPOSSIBLE)] = np.inf
    chosen = chosen_devices(row, platform)
    queued = queued_seconds(work, row["arrival_time"], len(platform))
    predicted = np.array(row["predicted"] or [-1.0] * len(platform.types))
    order = np.argsort(scores, kind="stable")
    listed = [int(each) for rank, each in enumerate(order) if rank < MOST_LISTED or chosen[each]]
    return Choice(
        scheduler=row["scheduler"],
        model_version=row["model_version"],
        explored=row["explored"],
        probability=row["probability"],
        overruled=not row["explored"] and _is_not_the_best(scores, chosen),
        compared=len(platform),
        devices=[
            ComparedDevice(
                device=name,
                type=platform.types[platform.type_of[device]].name,
                chosen=bool(chosen[device]),
                queued=float(queued[device]),
                predicted=_seconds(predicted[platform.type_of[device]]),
                expected=_seconds(expected[platform.type_of[device]]),
                score=float(scores[device]) if np.isfinite(scores[device]) else None,
            )
            for device, name in zip(listed, platform.device_names(listed), strict=True)
        ],
        queues_complete=work.complete,
        model=None if model is None else StoredModel(**model),
    )


def _is_not_the_best(scores: Floats, chosen: Bools) -> bool:
    possible = scores[np.isfinite(scores)]
    if not (len(possible) and chosen.any()):
        return False
    near = possible.min() + ROUNDING * np.abs(possible).max()
    return bool(scores[chosen].min() > near)


def _seconds(value: float) -> float | None:
    return float(value) if 0 <= value < np.inf else None
