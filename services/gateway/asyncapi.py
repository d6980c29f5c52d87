"""The AsyncAPI document of the bus, made from what the services agree on: subjects and schemas.

Each service also documents its own subscriptions at its own /asyncapi.
"""

from __future__ import annotations

import html
import re
from typing import Any

import pyarrow as pa
from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from shared import batches, subjects
from shared.events import Event, ServiceReport
from shared.formats import FORMATS
from shared.gateway import ARROW_STREAM
from shared.models import Manifest, Rollback
from shared.runs import RunRecord

JSON = "application/json"
PARAMETER = re.compile(r"\{(\w+)\}")

# Address, what it carries, who sends it, who reads it.
CHANNELS: dict[str, tuple[str, str, str, str]] = {
    "tasks": (
        subjects.tasks("{run}"),
        "batches of tasks",
        "generator, gateway",
        "schedulers, recorder",
    ),
    "decisions": (
        subjects.decisions("{run}", "{scheduler}"),
        "the tasks with what a scheduler decided",
        "schedulers",
        "simulator",
    ),
    "results": (
        subjects.results("{run}", "{scheduler}"),
        "the decisions with what they cost, and the virtual cluster after them",
        "simulator",
        "recorder, trainer, gateway",
    ),
    "models": (
        subjects.model("{run}", "{name}"),
        "a model with its manifest",
        "trainer",
        "schedulers, gateway",
    ),
    "first_models": (
        subjects.first_model("{run}", "{name}"),
        "version 1 of a model once more, which newer ones never push out",
        "trainer",
        "schedulers, gateway",
    ),
    "events": (subjects.event("{kind}"), "something to read", "all services", "recorder, gateway"),
    "rejected": (
        subjects.rejected("{service}"),
        "a message that could not be understood, with the reason in its headers",
        "all services",
        "people",
    ),
    "runs": (
        subjects.RUNS_SUBJECTS,
        "a run's spec and state (KV bucket)",
        "gateway, generator",
        "all services",
    ),
    "roll_call": (subjects.ROLL_CALL, "who is there?", "gateway, simulators", "all services"),
    "present": (
        f"{subjects.PRESENT}.{{asker}}.{{call}}",
        "the answer to a roll call: a report",
        "all services",
        "who called",
    ),
    "rollback": (subjects.ROLLBACK, "put an older model into service", "gateway", "trainer"),
}


def make_router() -> APIRouter:
    router = APIRouter()

    @router.get("/asyncapi.json", include_in_schema=False)
    async def described() -> Response:
        return JSONResponse(document())

    @router.get("/asyncapi", include_in_schema=False)
    async def shown(request: Request) -> Response:
        wants_page = "text/html" in request.headers.get("accept", "")
        return HTMLResponse(page()) if wants_page else JSONResponse(document())

    return router


def document() -> dict[str, Any]:
    payloads = _payloads()
    channels, operations = {}, {}
    for name, (address, about, senders, readers) in CHANNELS.items():
        parts = PARAMETER.findall(address)
        channels[name] = {
            "address": address,
            "description": f"{about}. From {senders} to {readers}.",
            "parameters": {part: {"description": f"the {part}"} for part in parts},
            "messages": {name: {"$ref": f"#/components/messages/{name}"}},
        }
        operations[f"send_{name}"] = {
            "action": "send",
            "channel": {"$ref": f"#/channels/{name}"},
            "summary": about,
        }
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Hybrid ML Scheduler: the bus",
            "version": str(FORMATS["batch"]),
            "description": "NATS JetStream. Arrow messages are IPC streams of one record batch; "
            "what belongs to the batch as a whole is JSON in the schema's metadata, `envelope`. "
            "A payload below is one row of the batch.",
        },
        "defaultContentType": JSON,
        "channels": channels,
        "operations": operations,
        "components": {"messages": {name: payloads[name] for name in CHANNELS}},
    }


def _payloads() -> dict[str, dict[str, Any]]:
    octets = {"contentType": "application/octet-stream", "payload": {"type": "string"}}
    found: dict[str, dict[str, Any]] = {
        kind: {"contentType": ARROW_STREAM, "payload": _row(schema)}
        for kind, schema in batches.SCHEMAS.items()
    }
    found["models"] = found["first_models"] = {**octets, "headers": _json(Manifest)}
    found["rejected"] = octets
    found["roll_call"] = {"payload": {"type": "null"}}
    for name, model in (("events", Event), ("runs", RunRecord), ("present", ServiceReport)):
        found[name] = {"contentType": JSON, "payload": _json(model)}
    found["rollback"] = {"contentType": JSON, "payload": _json(Rollback)}
    return found


def _json(model: Any) -> dict[str, Any]:
    """With its parts in place: a reference would point into another document."""
    schema: dict[str, Any] = model.model_json_schema()
    shared = schema.pop("$defs", {})

    def place(node: Any) -> Any:
        if isinstance(node, dict):
            if "$ref" in node:
                return place(shared[node["$ref"].rpartition("/")[2]])
            return {key: place(value) for key, value in node.items() if key != "discriminator"}
        return [place(item) for item in node] if isinstance(node, list) else node

    placed: dict[str, Any] = place(schema)
    return placed


def _row(schema: pa.Schema) -> dict[str, Any]:
    return {
        "type": "object",
        "required": schema.names,
        "properties": {field.name: _type(field.type) for field in schema},
    }


def _type(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_list(kind):
        return {"type": "array", "items": _type(kind.value_type)}
    if pa.types.is_integer(kind):
        return {"type": "integer", "format": str(kind)}
    if pa.types.is_floating(kind):
        return {"type": "number", "format": str(kind)}
    return {"type": "boolean"} if pa.types.is_boolean(kind) else {"type": "string"}


def page() -> str:
    """The channels at a glance, without scripts."""
    rows = "".join(
        f"<tr><td><code>{html.escape(address)}</code></td><td>{html.escape(about)}</td>"
        f"<td>{html.escape(senders)}</td><td>{html.escape(readers)}</td></tr>"
        for address, about, senders, readers in CHANNELS.values()
    )
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>The bus</title>"
        "<style>body{font:16px system-ui;margin:2rem;background:#0b1020;color:#dde}"
        "td,th{padding:.4rem .8rem;text-align:left;border-bottom:1px solid #334}"
        "a{color:#6cf}</style><h1>The bus</h1>"
        "<p>NATS JetStream. The whole document, with every field: "
        "<a href='/asyncapi.json'>/asyncapi.json</a> (AsyncAPI 3.0).</p>"
        "<table><tr><th>subject</th><th>carries</th><th>from</th><th>to</th></tr>"
        f"{rows}</table></html>"
    )
