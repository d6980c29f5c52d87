"""A worker's whole job: a batch of tasks in, the same batch with decisions out."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from prometheus_client import CollectorRegistry, Counter, Gauge

from services.scheduler.learned import Shelf
from services.scheduler.policy import Policy, check
from shared import batches
from shared.batches import Batch
from shared.errors import NotFound, Unreadable
from shared.events import Event
from shared.service import Service
from shared.spec import RunSpec


@dataclass(frozen=True, slots=True)
class Metrics:
    decided: Counter
    seconds: Counter
    failures: Counter
    version: Gauge

    @classmethod
    def register(cls, registry: CollectorRegistry) -> Metrics:
        return cls(
            decided=Counter("hybrid_decided_tasks_total", "Tasks decided", registry=registry),
            seconds=Counter("hybrid_decide_seconds_total", "Time in policy", registry=registry),
            failures=Counter(
                "hybrid_policy_failures_total", "Batches the policy failed on", registry=registry
            ),
            version=Gauge(
                "hybrid_model_version", "Of the model that decided last; 0: none", registry=registry
            ),
        )


class Worker:
    def __init__(self, service: Service, policy: Policy, shelf: Shelf | None) -> None:
        self._service = service
        self._policy = policy
        self._shelf = shelf
        self._metrics = Metrics.register(service.registry)

    async def take(self, batch: Batch) -> None:
        """Decide a batch and send it on; one of a run without this scheduler is passed over."""
        try:
            spec = await self._service.runs.spec(batch.envelope.run)
        except NotFound as error:
            raise Unreadable(str(error)) from None
        if self._policy.name not in spec.schedulers:
            return
        started = time.perf_counter()
        try:
            decision = await decide(batch, self._policy, self._shelf, spec)
        except Exception as error:
            # The batch is tried again: a mended worker goes on where this one could not.
            await self._tell_of_failure(batch, error)
            raise
        self._metrics.seconds.inc(time.perf_counter() - started)
        await self._service.bus.publish_batch(decision)
        self._metrics.decided.inc(batch.rows.num_rows)
        self._metrics.version.set(decision.rows.column("model_version")[0].as_py())

    async def _tell_of_failure(self, batch: Batch, error: Exception) -> None:
        self._metrics.failures.inc()
        run, number, name = batch.envelope.run, batch.envelope.batch, self._policy.name
        note = f"{name} cannot decide batch {number}: {error!r}"
        await self._service.bus.tell(
            Event(kind="policy_failed", service="scheduler", run=run, message=note[:2000]),
            message_id=f"event.policy.{run}.{name}.{number}",
        )


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
