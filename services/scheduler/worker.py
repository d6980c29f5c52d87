"""Consumes batches of tasks and publishes the same batches with decisions."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from prometheus_client import CollectorRegistry, Counter, Gauge

from services.scheduler.learned_policy import LearnedPolicy
from services.scheduler.model_cache import ModelCache
from services.scheduler.policy import AnyPolicy, Policy, check, visible_spec
from shared.bus.service import Service
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.errors import NotFound, Unreadable
from shared.messages import batches
from shared.messages.batches import Batch
from shared.messages.events import Event


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


class Worker(ABC):
    """What workers of both kinds of policies have in common."""

    def __init__(self, service: Service, policy: AnyPolicy, models: ModelCache | None) -> None:
        self._service = service
        self._policy = policy
        self._models = models
        self._metrics = Metrics.register(service.registry)

    async def process(self, batch: Batch) -> None:
        """Decide and publish a batch; skip it if this scheduler is not part of its run."""
        try:
            spec = await self._service.runs.spec(batch.envelope.run)
        except NotFound as error:
            raise Unreadable(str(error)) from None
        if self._policy.name in spec.schedulers:
            await self.decide_batch(batch, spec)

    @abstractmethod
    async def decide_batch(self, batch: Batch, spec: RunSpec) -> None:
        """Decide and publish a batch of a run that this scheduler is part of."""

    async def report_failure(self, batch: Batch, error: Exception) -> None:
        self._metrics.failures.inc()
        run, number, name = batch.envelope.run, batch.envelope.batch, self._policy.name
        note = f"{name} cannot decide batch {number}: {error!r}"
        await self._service.bus.publish_event(
            Event(kind="policy_failed", service="scheduler", run=run, message=note[:2000]),
            message_id=f"event.policy.{run}.{name}.{number}",
        )

    def count(self, decided: Batch, seconds: float) -> None:
        self._metrics.seconds.inc(seconds)
        self._metrics.decided.inc(decided.rows.num_rows)
        self._metrics.version.set(decided.rows.column("model_version")[0].as_py())


class TaskWorker(Worker):
    """Any number of these decide any batches at the same time."""

    def __init__(self, service: Service, policy: Policy, models: ModelCache | None) -> None:
        super().__init__(service, policy, models)
        self._task_policy = policy

    async def decide_batch(self, batch: Batch, spec: RunSpec) -> None:
        started = time.perf_counter()
        try:
            decided = await decide(batch, self._task_policy, self._models, spec)
        except Exception as error:
            # Raised, so that the batch is redelivered until a worker can decide it.
            await self.report_failure(batch, error)
            raise
        seconds = time.perf_counter() - started
        await self._service.bus.publish_batch(decided)
        self.count(decided, seconds)


async def decide(batch: Batch, policy: Policy, models: ModelCache | None, spec: RunSpec) -> Batch:
    tasks, visible = batches.tasks_of(batch.rows), visible_spec(spec, policy)
    model, version = (None, 0) if models is None else await models.model(batch.envelope.run)
    if version and isinstance(policy, LearnedPolicy):
        decisions = policy.decide_with(model, tasks, visible)
        decisions = replace(decisions, model_version=version)
    else:
        decisions = policy.decide(tasks, visible)
    return with_decisions(batch, tasks, check(decisions, tasks, spec, policy.name), policy, spec)


def with_decisions(
    batch: Batch, tasks: Tasks, decisions: Decisions, policy: AnyPolicy, spec: RunSpec
) -> Batch:
    rows = batches.decision_rows(batch.rows, tasks, decisions, spec.platform)
    envelope = replace(batch.envelope, kind="decisions", scheduler=policy.name, state=None)
    return Batch(envelope, rows)
