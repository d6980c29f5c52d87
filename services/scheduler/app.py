"""The scheduler service: one policy, any number of replicas, all on one durable consumer."""

from __future__ import annotations

import inspect
import sys
import time

from faststream.nats.annotations import NatsMessage
from prometheus_client import Counter, Gauge

from services.scheduler import policy as policies
from services.scheduler.learned import LearnedPolicy, Shelf
from services.scheduler.worker import decide
from shared import batches, subjects
from shared.bus import ONE_AT_A_TIME, existing
from shared.errors import NotFound, Unreadable
from shared.events import Event
from shared.service import Service
from shared.settings import Settings


def make(settings: Settings) -> Service:
    policy = policies.load(settings.policy)
    service = Service("scheduler", settings, scheduler=policy.name)
    # The first paragraph of its docstring; a base class's would say nothing of it.
    said = inspect.cleandoc(type(policy).__doc__ or "").partition("\n\n")[0]
    service.description = " ".join(said.split())
    bus = service.bus
    decided = Counter("hybrid_decided_tasks_total", "Tasks decided", registry=service.registry)
    seconds = Counter("hybrid_decide_seconds_total", "Time in policy", registry=service.registry)
    failures = Counter(
        "hybrid_policy_failures_total", "Batches the policy failed on", registry=service.registry
    )
    version = Gauge(
        "hybrid_model_version", "Of the model that decided last; 0: none", registry=service.registry
    )
    shelf = Shelf(policy, bus) if isinstance(policy, LearnedPolicy) else None
    durable = subjects.durable(subjects.scheduler_durable(policy.name), "tasks.*", settings)

    async def prepare() -> None:
        await bus.make_durable(subjects.TASKS, durable)

    service.prepare.append(prepare)

    @bus.broker.subscriber(
        "tasks.*",
        stream=existing(subjects.TASKS),
        durable=durable.durable_name,
        config=durable,
        pull_sub=ONE_AT_A_TIME,
        inbox_prefix=bus.inbox_prefix,
        title="Tasks",
        description="Arrow batches of tasks, decided and sent on as `decisions.<run>.<scheduler>`",
    )
    async def on_tasks(body: bytes, message: NatsMessage) -> None:
        batch = batches.decode(body, message.raw_message.subject)
        run = batch.envelope.run
        try:
            spec = await service.runs.spec(run)
        except NotFound as error:
            raise Unreadable(str(error)) from None
        if policy.name not in spec.schedulers:
            return
        started = time.perf_counter()
        try:
            decision = await decide(batch, policy, shelf, spec)
        except Exception as error:
            # The batch is tried again: a mended worker goes on where this one could not.
            failures.inc()
            note = f"{policy.name} cannot decide batch {batch.envelope.batch}: {error!r}"
            await bus.tell(
                Event(kind="policy_failed", service="scheduler", run=run, message=note[:2000]),
                message_id=f"event.policy.{run}.{policy.name}.{batch.envelope.batch}",
            )
            raise
        seconds.inc(time.perf_counter() - started)
        await bus.publish_batch(decision)
        decided.inc(batch.rows.num_rows)
        version.set(decision.rows.column("model_version")[0].as_py())

    if shelf is not None and isinstance(policy, LearnedPolicy):

        @bus.broker.subscriber(
            subjects.model("*", policy.learner),
            # An answer would reach the trainer before the stream's own, which it waits for.
            no_reply=True,
            title="Models",
            description="A shipped model with its manifest, taken into service between batches",
        )
        async def on_model(body: bytes, message: NatsMessage) -> None:
            await shelf.on_announcement(message.raw_message.subject, message.headers, body)

    return service


def main() -> None:
    try:
        service = make(Settings())
    except policies.PolicyError as error:
        sys.exit(str(error))
    service.run()
