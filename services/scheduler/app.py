"""The scheduler service: one policy, any number of replicas, all on one durable consumer."""

from __future__ import annotations

import inspect
import sys

from faststream.nats.annotations import NatsMessage

from services.scheduler import policy as policies
from services.scheduler.learned import LearnedPolicy, Shelf
from services.scheduler.worker import Worker
from shared import batches, subjects
from shared.bus import ONE_AT_A_TIME, existing
from shared.service import Service
from shared.settings import Settings


def make(settings: Settings) -> Service:
    policy = policies.load(settings.policy)
    service = Service("scheduler", settings, scheduler=policy.name)
    # The first paragraph of its docstring; a base class's would say nothing of it.
    said = inspect.cleandoc(type(policy).__doc__ or "").partition("\n\n")[0]
    service.description = " ".join(said.split())
    bus = service.bus
    shelf = Shelf(policy, bus) if isinstance(policy, LearnedPolicy) else None
    worker = Worker(service, policy, shelf)
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
        await worker.take(batches.decode(body, message.raw_message.subject))

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
