"""Consumes batches of tasks and publishes the same batches with decisions."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge

from services.scheduler.failures import MOST_TRIES, Failures
from services.scheduler.learned_policy import Learned, LearnedPolicy
from services.scheduler.model_cache import ModelCache
from services.scheduler.policy import AnyPolicy, Policy, check, visible_spec
from shared.bus.service import Service
from shared.bus.suspension import request_suspension
from shared.domain.lockstep import deciding_version
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.errors import NotFound, Unavailable, Unreadable
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
        self._failures = Failures()

    async def takes_part(self, run: str) -> bool:
        """Whether the tasks of this run that all schedulers are offered are decided here: not if
        the scheduler is suspended in it, or has a consumer of its own after that.

        True if there is no such run: `process` says so, unless the message says something worse
        when it is read."""
        name = self._policy.name
        try:
            record = await self._service.runs.local(run)
        except NotFound:
            return True
        return name in record.competing and name not in record.resumed

    async def check_not_suspended(self, run: str) -> None:
        """A consumer of the run's own keeps the batch for the next retry."""
        record = await self._service.runs.local(run)
        if self._policy.name in record.suspended:
            raise Unavailable(f"{self._policy.name} is suspended in run {run}")

    def replace_policy(self, policy: AnyPolicy) -> None:
        """Take the policy as its file has it now."""
        self._policy = policy
        if self._models is not None and isinstance(policy, Learned):
            self._models.policy = policy
        self._failures = Failures()

    async def process(self, batch: Batch) -> None:
        """Decide and publish a batch of a run that this scheduler takes part in."""
        try:
            spec = await self._service.runs.spec(batch.envelope.run)
        except NotFound as error:
            raise Unreadable(str(error)) from None
        await self.decide_batch(batch, spec)

    @abstractmethod
    async def decide_batch(self, batch: Batch, spec: RunSpec) -> None:
        """Decide and publish a batch of a run that this scheduler is part of."""

    async def model_of(self, batch: Batch, spec: RunSpec) -> tuple[Any, int]:
        """The model that decides a batch, and its version; None and 0: there is none."""
        if self._models is None:
            return None, 0
        run = batch.envelope.run
        if not spec.lockstep:
            return await self._models.model(run)
        version = deciding_version(batch.rows.column("task_id")[0].as_py(), spec)
        return await self._models.exact_version(run, version)

    async def report_failure(self, batch: Batch, error: Exception) -> None:
        """One event while a run fails; the scheduler is suspended after some tries of a batch."""
        self._metrics.failures.inc()
        run, number, name = batch.envelope.run, batch.envelope.batch, self._policy.name
        tries = self._failures.add(run, number)
        if self._failures.is_news(run):
            note = f"{name} cannot decide batch {number}: {error!r}"
            await self._service.bus.publish_event(
                Event(kind="policy_failed", service="scheduler", run=run, message=note[:2000]),
                message_id=f"event.policy.{run}.{name}.{number}",
            )
        if tries >= MOST_TRIES and await request_suspension(
            self._service.bus, run, name, _first_line(error), number
        ):
            self._failures.forget(run)
            await self._service.runs.refresh()

    def count(self, decided: Batch, seconds: float) -> None:
        self._metrics.seconds.inc(seconds)
        self._metrics.decided.inc(decided.rows.num_rows)
        self._metrics.version.set(decided.rows.column("model_version")[0].as_py())


class TaskWorker(Worker):
    """Any number of these decide any batches at the same time."""

    async def decide_batch(self, batch: Batch, spec: RunSpec) -> None:
        model, version = await self.model_of(batch, spec)
        started = time.perf_counter()
        try:
            assert isinstance(self._policy, Policy)
            decided = decide(batch, self._policy, spec, model, version)
        except Exception as error:
            # Raised, so that the batch is redelivered until a worker can decide it.
            await self.report_failure(batch, error)
            raise
        seconds = time.perf_counter() - started
        await self._service.bus.publish_batch(decided)
        self.count(decided, seconds)


def _first_line(error: Exception) -> str:
    return repr(error).partition("\n")[0]


def decide(
    batch: Batch, policy: Policy, spec: RunSpec, model: Any = None, version: int = 0
) -> Batch:
    tasks, visible = batches.tasks_of(batch.rows), visible_spec(spec, policy)
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
