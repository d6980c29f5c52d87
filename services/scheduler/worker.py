"""A worker's whole job: a batch of tasks in, the same batch with decisions out."""

from __future__ import annotations

from dataclasses import replace

from services.scheduler.policy import Policy, check
from shared import batches
from shared.batches import Batch
from shared.spec import RunSpec


def decide(batch: Batch, policy: Policy, spec: RunSpec) -> Batch:
    tasks = batches.tasks_of(batch.rows)
    said = check(policy.decide(tasks, spec), tasks, spec, policy.name)
    rows = batches.decision_rows(batch.rows, tasks, said, spec.cluster.gpus)
    envelope = replace(batch.envelope, kind="decisions", scheduler=policy.name, state=None)
    return Batch(envelope, rows)
