"""The scheduler service: one policy; its replicas share one durable consumer."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from faststream import Response

from services.scheduler import policy as policies
from services.scheduler.cluster_worker import ClusterWorker
from services.scheduler.learned_policy import LearnedClusterPolicy
from services.scheduler.loaded_policies import LoadedPolicies
from services.scheduler.model_cache import ModelCache
from services.scheduler.task_subscription import TaskSubscription
from services.scheduler.worker import TaskWorker
from shared.bus import service_server, streams
from shared.bus.client import FAILED_HEADER, Message, Subscriber, one_line
from shared.bus.service import Service
from shared.bus.suspension import request_suspension
from shared.messages import batches, subjects
from shared.messages.runs import Retry
from shared.runtime.cancellation import cancel
from shared.runtime.settings import Settings


def make(settings: Settings) -> Service:
    loaded = LoadedPolicies(settings.policy)
    policy = loaded.newest
    service = Service("scheduler", settings, scheduler=policy.name)
    # The first paragraph of the policy's own docstring, not of an inherited one.
    summary = inspect.cleandoc(type(policy).__doc__ or "").partition("\n\n")[0]
    service.description = " ".join(summary.split())
    bus = service.bus
    models = ModelCache(loaded, bus) if isinstance(policy, LearnedClusterPolicy) else None
    service.learner = policy.learner if isinstance(policy, LearnedClusterPolicy) else ""
    worker = _worker(service, loaded, models)
    consumer = streams.durable(subjects.scheduler_durable(policy.name), "tasks.*", settings)

    async def prepare() -> None:
        await bus.ensure_consumer(subjects.TASKS, consumer)

    service.prepare.append(prepare)

    async def decide(message: Message) -> None:
        async with kept_in_progress(message, settings.ack_wait.total_seconds() / 3):
            await worker.process(batches.decode(message.body, message.raw_message.subject))

    async def on_tasks(message: Message) -> None:
        # Before it is decoded: the worker gets the tasks of every run.
        if await worker.takes_part(message.raw_message.subject.split(".")[1]):
            await decide(message)

    async def on_tasks_of_run(message: Message) -> None:
        if await worker.is_real(message.raw_message.subject.split(".")[1]):
            return
        await worker.check_not_suspended(message.raw_message.subject.split(".")[1])
        await decide(message)

    def subscribe(persistent: bool) -> Subscriber:
        subscriber = bus.subscriber(subjects.TASKS, consumer, title="Tasks", persistent=persistent)
        subscriber(on_tasks)
        return subscriber

    async def subscribe_to_run(run: str, sequence: int) -> Subscriber:
        own = streams.resumed_durable(policy.name, run, sequence, settings)
        await bus.create_consumer(subjects.TASKS, own)
        subscriber = bus.subscriber(subjects.TASKS, own, title="Tasks of a run", persistent=False)
        subscriber(on_tasks_of_run)
        return subscriber

    async def on_retry(run: str, retry: Retry) -> bool:
        try:
            worker.load_again(run, retry)
        except policies.PolicyError as error:
            await request_suspension(bus, run, policy.name, str(error), retry.batch, retry.at)
            return False
        return True

    tasks = TaskSubscription(service, policy.name, subscribe, subscribe_to_run, on_retry)
    service.background.append(tasks.follow_runs)
    service.closing.append(tasks.close)

    @bus.broker.subscriber(
        subjects.decide("*", policy.name),
        subjects.scheduler_durable(policy.name),
        title="Decide",
        description="Tasks of a real run that have just arrived; the reply has the decisions",
    )
    async def on_decide(message: Message) -> Response:
        run = message.raw_message.subject.split(".")[1]
        try:
            decided = await worker.answer(batches.decode(message.body, subjects.tasks(run)))
        except Exception as error:  # the executor asks again, until the scheduler is suspended
            return Response(b"", headers={FAILED_HEADER: one_line(repr(error))})
        return Response(batches.encode(decided.envelope, decided.rows))

    if isinstance(worker, ClusterWorker):

        @bus.broker.subscriber(
            subjects.placed("*", policy.name),
            no_reply=True,
            title="Placed batches",
            description="The cluster after a batch, from another worker of this scheduler",
        )
        async def on_placed(message: Message) -> None:
            await worker.on_placed(message.raw_message.subject, message.body)

    if models is not None and isinstance(policy, LearnedClusterPolicy):

        @bus.broker.subscriber(
            subjects.model("*", policy.learner),
            # A reply would reach the trainer before the stream's acknowledgement.
            no_reply=True,
            title="Models",
            description="A shipped model with its manifest, taken into service between batches",
        )
        async def on_model(message: Message) -> None:
            subject = message.raw_message.subject
            expected = await worker.expects(subjects.run_of(subject))
            await models.on_model(subject, message.headers, message.body, expected=expected)

    return service


@asynccontextmanager
async def kept_in_progress(message: Message, every: float) -> AsyncIterator[None]:
    """A batch that takes long to prepare, or waits for its turn, is not redelivered meanwhile."""

    async def extend() -> None:
        while True:
            await asyncio.sleep(every)
            await message.in_progress()

    extending = asyncio.create_task(extend())
    try:
        yield
    finally:
        await cancel(extending)


def _worker(
    service: Service, loaded: LoadedPolicies, models: ModelCache | None
) -> TaskWorker | ClusterWorker:
    if isinstance(loaded.newest, policies.ClusterPolicy):
        return ClusterWorker(service, loaded, models)
    return TaskWorker(service, loaded)


def main() -> None:
    """A worker for each of the policies, in one process."""
    settings = Settings()
    try:
        services = [
            make(settings.model_copy(update={"policy": policy}))
            for policy in settings.policy.split(",")
        ]
    except policies.PolicyError as error:
        sys.exit(str(error))
    service_server.run(*(service.server() for service in services))
