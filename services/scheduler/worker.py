"""Consumes batches of tasks and publishes the same batches with decisions."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from prometheus_client import CollectorRegistry, Counter, Gauge

from services.scheduler.failures import MOST_TRIES, Failures
from services.scheduler.loaded_policies import LoadedPolicies
from services.scheduler.policy import Policy, PolicyError, check, visible_spec
from shared.bus.service import Service
from shared.bus.suspension import request_suspension
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.errors import NotFound, Unavailable, Unreadable
from shared.messages import batches
from shared.messages.batches import Batch
from shared.messages.events import Event
from shared.messages.runs import Retry


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

    def __init__(self, service: Service, policies: LoadedPolicies) -> None:
        self._service = service
        self._policies = policies
        self._name = policies.name
        self._metrics = Metrics.register(service.registry)
        self._failures = Failures()
        self._retried_at: dict[str, float] = {}  # by run that was retried

    async def takes_part(self, run: str) -> bool:
        """Whether the run's tasks from the common consumer are decided here: not if the scheduler
        is suspended in the run, if it has a consumer of its own after a retry, or if the run is
        real, since then the executor requests decisions.

        True if there is no such run: `process` reports that when it reads the message."""
        name = self._name
        try:
            record = await self._service.runs.local(run)
        except NotFound:
            return True
        return name in record.competing and name not in record.resumed and not record.spec.real

    async def is_real(self, run: str) -> bool:
        return (await self._service.runs.local(run)).spec.real

    async def check_not_suspended(self, run: str) -> None:
        """A consumer of the run's own keeps the batch for the next retry."""
        record = await self._service.runs.local(run)
        if self._name in record.suspended:
            raise Unavailable(f"{self._name} is suspended in run {run}")

    def load_again(self, run: str, retry: Retry) -> None:
        """Let a run continue with the policy as its file has it now."""
        self._retried_at[run] = retry.at
        self._policies.load_again(run)
        self._failures.forget(run)

    async def expects(self, run: str) -> bool:
        """Whether tasks of this run are decided here, also if none has come yet. If so, its policy
        is loaded."""
        try:
            record = await self._service.runs.local(run)
            if not record.active or self._name not in record.competing:
                return False
            await self._load_policy(run)
        except (NotFound, PolicyError):  # which the first batch reports
            return False
        return True

    async def load_policy(self, batch: Batch) -> None:
        """Load the file of a plug-in again if it has changed since the run before."""
        try:
            await self._load_policy(batch.envelope.run)
        except PolicyError as error:
            await self.report_failure(batch, error)
            raise

    async def _load_policy(self, run: str) -> None:
        before = self._policies.newest
        if self._policies.of(run) is self._policies.newest is not before:
            note = f"{self._name} decides run {run} with its file as it is now: it has changed"
            await self._service.bus.publish_event(
                Event(kind="policy_loaded", service="scheduler", run=run, message=note),
                message_id=f"event.policy.loaded.{run}.{self._name}",
            )

    async def process(self, batch: Batch) -> None:
        """Decide and publish a batch of a run that this scheduler takes part in."""
        await self.load_policy(batch)
        await self.decide_batch(batch, await self.spec_of(batch))

    async def spec_of(self, batch: Batch) -> RunSpec:
        try:
            return await self._service.runs.spec(batch.envelope.run)
        except NotFound as error:
            raise Unreadable(str(error)) from None

    @abstractmethod
    async def answer(self, batch: Batch) -> Batch:
        """The decisions for tasks of a real run that have just arrived; the state in the envelope
        is that of the executor's machine."""

    @abstractmethod
    async def decide_batch(self, batch: Batch, spec: RunSpec) -> None:
        """Decide and publish a batch of a run that this scheduler is part of."""

    async def report_failure(self, batch: Batch, error: Exception) -> None:
        """One event while a run fails; the scheduler is suspended after some tries of a batch."""
        self._metrics.failures.inc()
        run, number, name = batch.envelope.run, batch.envelope.batch, self._name
        tries = self._failures.add(run, number)
        if self._failures.is_news(run):
            note = f"{name} cannot decide batch {number}: {error!r}"
            await self._service.bus.publish_event(
                Event(
                    kind="policy_failed",
                    service="scheduler",
                    run=run,
                    message=note[:2000],
                    data={"scheduler": name},
                ),
                message_id=f"event.policy.{run}.{name}.{number}",
            )
        if tries >= MOST_TRIES and await request_suspension(
            self._service.bus, run, name, _first_line(error), number, self._retried_at.get(run, 0.0)
        ):
            self._failures.forget(run)
            await self._service.runs.refresh()

    def count(self, decided: Batch, seconds: float) -> None:
        self._metrics.seconds.inc(seconds)
        self._metrics.decided.inc(decided.rows.num_rows)
        self._metrics.version.set(batches.value(decided.rows, "model_version", 0))


class TaskWorker(Worker):
    """Any number of these decide any batches at the same time."""

    async def decide_batch(self, batch: Batch, spec: RunSpec) -> None:
        decided, seconds = await self._decide(batch, spec)
        await self._service.bus.publish_batch(decided)
        self.count(decided, seconds)

    async def answer(self, batch: Batch) -> Batch:
        await self.load_policy(batch)
        decided, seconds = await self._decide(batch, await self.spec_of(batch))
        self.count(decided, seconds)
        return decided

    async def _decide(self, batch: Batch, spec: RunSpec) -> tuple[Batch, float]:
        started = time.perf_counter()
        try:
            policy = self._policies.of(batch.envelope.run)
            assert isinstance(policy, Policy)
            decided = decide(batch, policy, spec)
        except Exception as error:
            # Raised, so that the batch is redelivered until a worker can decide it.
            await self.report_failure(batch, error)
            raise
        return decided, time.perf_counter() - started


def _first_line(error: Exception) -> str:
    return repr(error).partition("\n")[0]


def decide(batch: Batch, policy: Policy, spec: RunSpec) -> Batch:
    tasks = batches.tasks_of(batch.rows)
    decisions = policy.decide(tasks, visible_spec(spec, policy))
    return with_decisions(
        batch, tasks, check(decisions, tasks, spec, policy.name), policy.name, spec
    )


def with_decisions(
    batch: Batch, tasks: Tasks, decisions: Decisions, scheduler: str, spec: RunSpec
) -> Batch:
    rows = batches.decision_rows(batch.rows, tasks, decisions, spec.platform)
    envelope = replace(batch.envelope, kind="decisions", scheduler=scheduler, state=None)
    return Batch(envelope, rows)
