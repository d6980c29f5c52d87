"""The AsyncAPI document of the bus: every subject, who publishes and consumes it, its schema.

FastStream generates it. Each service also describes its own subscriptions at its own /asyncapi.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from fastapi import APIRouter
from faststream.nats import NatsBroker
from faststream.specification import AsyncAPI
from pydantic import create_model

from shared.messages import subjects
from shared.messages.columns import DECISION, RESULT, TASK, pydantic_fields
from shared.messages.events import Event, ServiceReport
from shared.messages.execution import LeaseHolder, Underway
from shared.messages.formats import FORMATS
from shared.messages.models import Manifest, Rollback
from shared.messages.runs import RunRecord, SuspensionRequest

PARAMETER = re.compile(r"\{(\w+)\}")
DESCRIPTION = (
    "NATS JetStream. Tasks, decisions and results are Arrow IPC streams of one record batch, whose "
    "schema metadata has the batch's `envelope` as JSON; their schemas describe one row. Models "
    "are ONNX or safetensors with the manifest in a header. All others are JSON."
)

Task: Any = create_model("Task", **pydantic_fields(TASK))
Decision: Any = create_model("Decision", **pydantic_fields((*TASK, *DECISION)))
Result: Any = create_model("Result", **pydantic_fields((*TASK, *DECISION, *RESULT)))

_RUN, _SCHEDULER, _NAME = "{run}", "{scheduler}", "{name}"
# By name: subject, schema, who publishes it for whom.
CHANNELS: dict[str, tuple[str, Any, str]] = {
    "tasks": (subjects.tasks(_RUN), Task, "generator, gateway to schedulers, recorder"),
    "decisions": (subjects.decisions(_RUN, _SCHEDULER), Decision, "schedulers to simulator"),
    "results": (
        subjects.results(_RUN, _SCHEDULER),
        Result,
        "simulator, executor to recorder, trainer, gateway",
    ),
    "decide": (subjects.decide(_RUN, _SCHEDULER), Task, "executor to schedulers (request)"),
    "execution": (subjects.execution(_RUN, _SCHEDULER), Underway, "executor to itself"),
    "execution_lease": (subjects.EXECUTION_LEASE, LeaseHolder, "executors to each other"),
    "models": (subjects.model(_RUN, _NAME), Manifest, "trainer to schedulers, gateway"),
    # Version 1 again, which newer versions do not replace.
    "first_models": (subjects.first_model(_RUN, _NAME), Manifest, "trainer to schedulers, gateway"),
    "events": (subjects.event("{kind}"), Event, "all services to recorder, gateway"),
    "rejected": (subjects.rejected("{service}"), bytes, "all services: dead letters"),
    "runs": (subjects.RUNS_SUBJECTS, RunRecord, "gateway, generator to all services (KV bucket)"),
    "roll_call": (subjects.ROLL_CALL, None, "gateway, simulators to all services"),
    "present": (f"{subjects.PRESENT}.{{asker}}.{{call}}", ServiceReport, "replies to a roll call"),
    "rollback": (subjects.ROLLBACK, Rollback, "gateway to trainer (request)"),
    "suspend": (
        subjects.SUSPEND,
        SuspensionRequest,
        "schedulers, trainer to generator (request)",
    ),
}


router = APIRouter()


@router.get("/asyncapi.json", include_in_schema=False)
@router.get("/asyncapi", include_in_schema=False)
@cache
def document() -> dict[str, Any]:
    broker = NatsBroker()
    for name, (subject, schema, description) in CHANNELS.items():
        broker.publisher(subject, title=name, description=description, schema=schema)
    specification = AsyncAPI(
        broker,
        title="Hybrid ML Scheduler: the bus",
        version=str(FORMATS["batch"]),
        description=DESCRIPTION,
    )
    described: dict[str, Any] = specification.to_specification().to_jsonable()
    described["channels"] = dict(sorted(described["channels"].items()))
    for channel in described["channels"].values():
        names = PARAMETER.findall(channel["address"])
        channel["parameters"] = {name: {"description": f"the {name}"} for name in names}
    return described
