"""The name of every subject, stream, durable consumer and bucket on the bus."""

from __future__ import annotations

import re

TASKS, DECISIONS, RESULTS = "TASKS", "DECISIONS", "RESULTS"
MODELS, EVENTS, REJECTED = "MODELS", "EVENTS", "REJECTED"
EXECUTION = "EXECUTION"

RUNS_BUCKET = "runs"
RUNS_STREAM = f"KV_{RUNS_BUCKET}"
RUNS_SUBJECTS = f"$KV.{RUNS_BUCKET}.*"

ROLL_CALL = "arena.rollcall"
PRESENT = "arena.present"  # prefix of the reply subjects of a roll call
ROLLBACK = "arena.rollback"
SUSPEND = "arena.suspend"

# NATS's own report of a client that it refuses, and the user who may read it.
REFUSED_CLIENTS = "$SYS.SERVER.*.CLIENT.AUTH.ERR"
MONITOR_USER = "monitor"

RUN_ID = re.compile(r"^[a-z0-9][a-z0-9-]{0,63}$")


def tasks(run: str) -> str:
    return f"tasks.{run}"


def decisions(run: str, scheduler: str) -> str:
    return f"decisions.{run}.{scheduler}"


def results(run: str, scheduler: str) -> str:
    return f"results.{run}.{scheduler}"


def placed(run: str, scheduler: str) -> str:
    """Between the workers of a cluster policy: that one waits for its turn, or the cluster after a
    batch. Not stored."""
    return f"placed.{run}.{scheduler}"


def decide(run: str, scheduler: str) -> str:
    """Request of the executor to the workers of a scheduler in a real run: tasks that have just
    arrived, with the state of the machine; the reply has the decisions."""
    return f"decide.{run}.{scheduler}"


def execution(run: str, scheduler: str) -> str:
    """What the executor has started and not yet published results of."""
    return f"execution.{run}.{scheduler}"


EXECUTION_LEASE = "execution.lease"  # of the executor that is active


def run_of(subject: str) -> str:
    """The run of a subject that names one: `tasks.RUN`, `results.RUN.SCHEDULER`, ..."""
    return subject.split(".")[1]


def scheduler_of(subject: str) -> str:
    """The scheduler of a subject that names one: `decisions.RUN.SCHEDULER`, ..."""
    return subject.split(".")[2]


def model(run: str, name: str) -> str:
    return f"models.{run}.{name}"


def first_model(run: str, name: str) -> str:
    """A second copy of version 1, which newer versions never replace."""
    return f"models.{run}.{name}-first"


def event(kind: str) -> str:
    return f"events.{kind}"


def rejected(service: str) -> str:
    return f"rejected.{service}"


def scheduler_durable(scheduler: str) -> str:
    """On TASKS: shared by all workers of a scheduler."""
    return f"scheduler-{scheduler}"


def resumed_durable(scheduler: str, run: str) -> str:
    """On TASKS: of one run in which the scheduler was suspended and takes part again."""
    return f"scheduler-{scheduler}-{run}"


def simulator_durable(scheduler: str) -> str:
    """On DECISIONS: shared by the simulators; one of them serves a scheduler at a time."""
    return f"simulator-{scheduler}"


def trainer_durable(learner: str) -> str:
    """On RESULTS."""
    return f"trainer-{learner}"


RECORDER_DURABLE = "recorder"  # on TASKS, RESULTS, EVENTS and the runs bucket


def inbox(user: str) -> str:
    """The prefix of a user's reply subjects; other users may not subscribe there."""
    return f"_INBOX.{user}" if user else "_INBOX"
