"""Errors as problem details (RFC 9457): the one place that maps exceptions to HTTP."""

from __future__ import annotations

from typing import Any

import nats.errors
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from shared.errors import ArenaError, Conflict, NotAllowed, NotFound, SpecError, Unavailable

STATUS: dict[type[ArenaError], tuple[int, str]] = {
    SpecError: (422, "The run spec is not valid"),
    NotFound: (404, "Not found"),
    NotAllowed: (409, "Not possible in this state"),
    Conflict: (409, "Another request was first"),
    Unavailable: (503, "A part of the arena does not answer"),
}
UNEXPECTED = "Internal error"
PROBLEM_JSON = "application/problem+json"

# Tags of a body that has two forms; error messages leave them out.
ONE, MANY = "one", "many"


class Problem(BaseModel):
    """An error response (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    problems: list[str] | None = Field(None, description="a line for each invalid field")


def problem(status: int, title: str, detail: str, problems: list[str] | None = None) -> Response:
    body = Problem(
        type="about:blank", title=title, status=status, detail=detail, problems=problems or None
    )
    return Response(body.model_dump_json(exclude_none=True), status, media_type=PROBLEM_JSON)


def described(description: str) -> dict[str, Any]:
    """An error response for the OpenAPI description."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": description, "content": {PROBLEM_JSON: {"schema": schema}}}


def install(app: FastAPI) -> None:
    @app.exception_handler(ArenaError)
    async def arena_error(request: Request, error: ArenaError) -> Response:
        for kind, (status, title) in STATUS.items():
            if isinstance(error, kind):
                problems = error.problems if isinstance(error, SpecError) else None
                return problem(status, title, str(error), problems)
        return problem(500, UNEXPECTED, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid_request(request: Request, error: RequestValidationError) -> Response:
        problems = [explain(entry) for entry in error.errors()]
        return problem(422, "The request is not valid", "; ".join(problems), problems)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        response = problem(error.status_code, str(error.detail), str(error.detail))
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(nats.errors.Error)
    async def bus_unavailable(request: Request, error: nats.errors.Error) -> Response:
        return problem(503, STATUS[Unavailable][1], f"NATS: {error}")

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        return problem(500, UNEXPECTED, "the gateway's log has the details")

    openapi = app.openapi

    def with_problem_schema() -> dict[str, Any]:
        document = openapi()
        document["components"]["schemas"]["Problem"] = Problem.model_json_schema()
        return document

    app.openapi = with_problem_schema  # type: ignore[method-assign]


def explain(entry: Any) -> str:
    """`tasks.0.size: Input should be greater than 0 (got -3)`; long input is not repeated."""
    field = ".".join(str(part) for part in entry["loc"] if part not in ("body", ONE, MANY))
    value = entry.get("input")
    shown = f" (got {value!r})" if isinstance(value, (int, float, str)) else ""
    return f"{field}: {entry['msg']}{shown}"[:300].removeprefix(": ")
