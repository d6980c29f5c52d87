"""A worker's whole job: a batch of tasks in, the same batch with decisions out."""

from __future__ import annotations

from dataclasses import replace

from services.scheduler.learned import Shelf
from services.scheduler.policy import Policy, check
from shared import batches
from shared.batches import Batch
from shared.spec import RunSpec


async def decide(batch: Batch, policy: Policy, shelf: Shelf | None, spec: RunSpec) -> Batch:
    tasks = batches.tasks_of(batch.rows)
    if shelf is None:
        said = policy.decide(tasks, spec)
    else:
        said = await shelf.decide(batch.envelope.run, tasks, spec)
    said = check(said, tasks, spec, policy.name)
    rows = batches.decision_rows(batch.rows, tasks, said, spec.cluster.gpus)
    envelope = replace(batch.envelope, kind="decisions", scheduler=policy.name, state=None)
    return Batch(envelope, rows)
