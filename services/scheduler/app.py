"""The scheduler service: one policy; its replicas share one durable consumer."""

from __future__ import annotations

import inspect
import sys

from faststream.nats.annotations import NatsMessage

from services.scheduler import policy as policies
from services.scheduler.learned_policy import LearnedPolicy
from services.scheduler.model_cache import ModelCache
from services.scheduler.worker import Worker
from shared.bus import streams
from shared.bus.service import Service
from shared.messages import batches, subjects
from shared.runtime.settings import Settings


def make(settings: Settings) -> Service:
    policy = policies.load(settings.policy)
    service = Service("scheduler", settings, scheduler=policy.name)
    # The first paragraph of the policy's own docstring, not of an inherited one.
    summary = inspect.cleandoc(type(policy).__doc__ or "").partition("\n\n")[0]
    service.description = " ".join(summary.split())
    bus = service.bus
    models = ModelCache(policy, bus) if isinstance(policy, LearnedPolicy) else None
    worker = Worker(service, policy, models)
    consumer = streams.durable(subjects.scheduler_durable(policy.name), "tasks.*", settings)

    async def prepare() -> None:
        await bus.ensure_consumer(subjects.TASKS, consumer)

    service.prepare.append(prepare)

    @bus.subscriber(
        subjects.TASKS,
        consumer,
        title="Tasks",
        description="Arrow batches of tasks, decided and sent on as `decisions.<run>.<scheduler>`",
    )
    async def on_tasks(body: bytes, message: NatsMessage) -> None:
        await worker.process(batches.decode(body, message.raw_message.subject))

    if models is not None and isinstance(policy, LearnedPolicy):

        @bus.broker.subscriber(
            subjects.model("*", policy.learner),
            # A reply would reach the trainer before the stream's acknowledgement.
            no_reply=True,
            title="Models",
            description="A shipped model with its manifest, taken into service between batches",
        )
        async def on_model(body: bytes, message: NatsMessage) -> None:
            await models.on_model(message.raw_message.subject, message.headers, body)

    return service


def main() -> None:
    try:
        service = make(Settings())
    except policies.PolicyError as error:
        sys.exit(str(error))
    service.run()
