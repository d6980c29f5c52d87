"""The configuration of each stream and durable consumer.

TASKS and RESULTS keep the last message of each subject: it is the state of the run. The generator
trims what the slowest consumer of TASKS, or the recorder for RESULTS (and the trainer, while there
is space), has acknowledged. Both refuse new messages when they are full: an accepted message is
never dropped before it was processed. DECISIONS is a work queue: a decision is removed once the
simulator has acknowledged it.
"""

from __future__ import annotations

from datetime import timedelta

from nats.js import JetStreamContext
from nats.js.api import (
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import NotFoundError

from shared.messages import subjects
from shared.messages.subjects import (
    DECISIONS,
    EVENTS,
    EXECUTION,
    MODELS,
    REJECTED,
    RESULTS,
    RUNS_BUCKET,
    RUNS_STREAM,
    TASKS,
)
from shared.runtime.settings import MEGABYTE, Settings

# Versions of each model that MODELS keeps while its run is active; every version's manifest stays
# in ClickHouse.
KEPT_VERSIONS = 16
INACTIVE_SECONDS = 3600.0


def streams(settings: Settings) -> list[StreamConfig]:
    def stream(
        name: str,
        subject: str,
        max_bytes: int,
        *,
        retention: RetentionPolicy = RetentionPolicy.LIMITS,
        discard: DiscardPolicy = DiscardPolicy.NEW,
        max_age: timedelta = timedelta(0),
        per_subject: int = -1,
    ) -> StreamConfig:
        return StreamConfig(
            name=name,
            subjects=[subject],
            retention=retention,
            discard=discard,
            max_bytes=max_bytes,
            max_age=max_age.total_seconds(),
            max_msgs_per_subject=per_subject,
            storage=StorageType(settings.nats_storage),
            num_replicas=settings.nats_replicas,
            duplicate_window=settings.duplicate_window.total_seconds(),
            allow_direct=True,
        )

    return [
        stream(TASKS, "tasks.*", settings.tasks_max_bytes),
        stream(
            DECISIONS,
            "decisions.*.*",
            settings.decisions_max_bytes,
            retention=RetentionPolicy.WORK_QUEUE,
        ),
        stream(RESULTS, "results.*.*", settings.results_max_bytes),
        # The newest models of each run: the one in service and those to roll back to.
        stream(
            MODELS,
            "models.*.*",
            512 * MEGABYTE,
            discard=DiscardPolicy.OLD,
            per_subject=KEPT_VERSIONS,
        ),
        # The recorder has stored events long before they are discarded here.
        stream(EVENTS, "events.*", 128 * MEGABYTE, discard=DiscardPolicy.OLD),
        # Discards old ones, or a flood of garbage would block the services.
        stream(REJECTED, "rejected.*", 256 * MEGABYTE, discard=DiscardPolicy.OLD),
        # Only the last message per subject is used; it expires after 30 days.
        stream(
            EXECUTION,
            "execution.>",
            64 * MEGABYTE,
            discard=DiscardPolicy.OLD,
            max_age=timedelta(days=30),
            per_subject=1,
        ),
        _runs_bucket(settings),
    ]


async def create(jetstream: JetStreamContext, settings: Settings) -> None:
    """Create the streams; those that exist get this configuration."""
    for config in streams(settings):
        assert config.name is not None
        try:
            existing = await jetstream.stream_info(config.name)
            # The storage of a stream cannot be changed.
            await jetstream.update_stream(config, storage=existing.config.storage)
        except NotFoundError:
            await jetstream.add_stream(config)


async def check(jetstream: JetStreamContext, settings: Settings) -> None:
    """Raise NotFoundError if a stream is missing."""
    for config in streams(settings):
        assert config.name is not None
        await jetstream.stream_info(config.name)


def _runs_bucket(settings: Settings) -> StreamConfig:
    """A KV bucket is a stream of this kind. No direct reads: on a replica that lags behind, a new
    run would not exist yet."""
    return StreamConfig(
        name=RUNS_STREAM,
        subjects=[f"$KV.{RUNS_BUCKET}.>"],
        max_msgs_per_subject=1,
        discard=DiscardPolicy.NEW,
        deny_delete=True,
        allow_rollup_hdrs=True,
        allow_msg_ttl=True,
        allow_direct=False,
        storage=StorageType(settings.nats_storage),
        num_replicas=settings.nats_replicas,
        duplicate_window=settings.duplicate_window.total_seconds(),
    )


def durable(
    name: str, subject: str | list[str], settings: Settings, *, pending: int = 256
) -> ConsumerConfig:
    return ConsumerConfig(
        durable_name=name,
        filter_subject=subject if isinstance(subject, str) else None,
        filter_subjects=None if isinstance(subject, str) else sorted(subject),
        ack_wait=settings.ack_wait.total_seconds(),
        max_ack_pending=pending,
        max_deliver=-1,
    )


def resumed_durable(scheduler: str, run: str, sequence: int, settings: Settings) -> ConsumerConfig:
    """Delivers one run's tasks, from a sequence in TASKS on, to a scheduler that was suspended. It
    is deleted some time after the run; if that is too early, batches are decided again, which the
    simulator ignores."""
    config = durable(subjects.resumed_durable(scheduler, run), subjects.tasks(run), settings)
    return config.evolve(
        deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=sequence,
        inactive_threshold=INACTIVE_SECONDS,
    )
