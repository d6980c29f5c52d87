"""Every subject, stream, durable consumer and bucket of the bus, in one place.

TASKS and RESULTS keep their last message per subject: it is the state of the run (see
`services/generator`, `services/simulator`). The generator trims them, TASKS behind the slowest
reader and RESULTS behind the recorder (and the trainer, while there is room). Both refuse new
messages when they are full: what was accepted is never dropped before it was decided and stored.
DECISIONS is a work queue: a decision is gone once the simulator has acknowledged it.
"""

from __future__ import annotations

import re
from datetime import timedelta

from nats.js.api import (
    ConsumerConfig,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)

from shared.settings import MEGABYTE, Settings

TASKS, DECISIONS, RESULTS = "TASKS", "DECISIONS", "RESULTS"
MODELS, EVENTS, REJECTED = "MODELS", "EVENTS", "REJECTED"

RUNS_BUCKET = "runs"
RUNS_STREAM = f"KV_{RUNS_BUCKET}"
RUNS_SUBJECTS = f"$KV.{RUNS_BUCKET}.*"

# Of each model, in MODELS, while its run goes on; every version's manifest stays in ClickHouse.
KEPT_VERSIONS = 16

ROLL_CALL = "arena.rollcall"
PRESENT = "arena.present"  # and who asked: where a roll call is answered
ROLLBACK = "arena.rollback"

RUN_ID = re.compile(r"^[a-z0-9][a-z0-9-]{0,63}$")


def tasks(run: str) -> str:
    return f"tasks.{run}"


def decisions(run: str, scheduler: str) -> str:
    return f"decisions.{run}.{scheduler}"


def results(run: str, scheduler: str) -> str:
    return f"results.{run}.{scheduler}"


def model(run: str, name: str) -> str:
    return f"models.{run}.{name}"


def first_model(run: str, name: str) -> str:
    """Version 1 once more, for good: newer ones never push it out."""
    return f"models.{run}.{name}-first"


def event(kind: str) -> str:
    return f"events.{kind}"


def rejected(service: str) -> str:
    return f"rejected.{service}"


def scheduler_durable(scheduler: str) -> str:
    """On TASKS: shared by all workers of a scheduler."""
    return f"scheduler-{scheduler}"


def simulator_durable(scheduler: str) -> str:
    """On DECISIONS: shared by the simulators, one of which serves a scheduler at a time."""
    return f"simulator-{scheduler}"


def trainer_durable(learner: str) -> str:
    """On RESULTS."""
    return f"trainer-{learner}"


RECORDER_DURABLE = "recorder"  # on TASKS, RESULTS, EVENTS and the runs bucket


def inbox(user: str) -> str:
    """Where a user gets its answers; nobody else may listen there."""
    return f"_INBOX.{user}" if user else "_INBOX"


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
        # A run's newest models, in service and to roll back to; older ones give way.
        stream(
            MODELS,
            "models.*.*",
            512 * MEGABYTE,
            discard=DiscardPolicy.OLD,
            per_subject=KEPT_VERSIONS,
        ),
        # Notes for people; the recorder has long stored what falls out here.
        stream(EVENTS, "events.*", 128 * MEGABYTE, discard=DiscardPolicy.OLD),
        # Dead letters give way to newer ones, or a flood of garbage would stop the services.
        stream(REJECTED, "rejected.*", 256 * MEGABYTE, discard=DiscardPolicy.OLD),
        _runs_bucket(settings),
    ]


def _runs_bucket(settings: Settings) -> StreamConfig:
    """A KV bucket is a stream of this kind. Nobody may read it from a server that lags behind: a
    run that is not there yet would look like one that never was."""
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


def durable(name: str, subject: str, settings: Settings, *, pending: int = 256) -> ConsumerConfig:
    return ConsumerConfig(
        durable_name=name,
        filter_subject=subject,
        ack_wait=settings.ack_wait.total_seconds(),
        max_ack_pending=pending,
        max_deliver=-1,
    )
