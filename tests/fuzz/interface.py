"""Every call of the HTTP interface, with what its description allows and with what it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import requests
import schemathesis

# Loaded now: pytest compiles it anew, which Python 3.11 does not manage in another thread.
import schemathesis.specs.openapi.schemas
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.strategies import SearchStrategy, binary
from schemathesis import Case, GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.failures import FailureGroup

from shared.runtime.gateway_client import ARROW_STREAM
from tests.waiting import PATIENCE

CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
NEEDS_TRAINER = "POST /api/models/{run}/{name}/rollback"

schemathesis.openapi.media_type(ARROW_STREAM, binary(max_size=2000))


def bombard(
    address: str, known: dict[str, Any], calls: int, least: int, number: int
) -> tuple[Counter[str], list[str]]:
    """Make calls; says how many of each, and what was wrong with which.

    `known` has parameters of paths that lead somewhere: each is used as often as made-up ones.
    Some calls have little to vary, so all are made again until there are `least` of them.
    """
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    made: Counter[str] = Counter()
    wrong: list[str] = []
    with requests.Session() as session:
        operations = [found.ok() for found in schema.get_all_operations()]
        for again in count():
            for operation in operations:
                if again and made.total() >= least:
                    return made, wrong
                for strategy in _strategies(operation, known):
                    _try(strategy, session, made, wrong, calls, number + again)
    raise AssertionError("calls are made until there are enough")


def _strategies(operation: Any, known: dict[str, Any]) -> Iterator[SearchStrategy[Case]]:
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        yield operation.as_strategy(generation_mode=mode)
    names = [parameter.name for parameter in operation.path_parameters]
    if names:
        yield operation.as_strategy(path_parameters={name: known[name] for name in names})


def _try(
    strategy: SearchStrategy[Case],
    session: requests.Session,
    made: Counter[str],
    wrong: list[str],
    calls: int,
    number: int,
) -> None:
    @seed(number)
    @settings(
        max_examples=calls,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def call(case: Case) -> None:
        made[case.operation.label] += 1
        response = case.call(session=session, timeout=PATIENCE)
        if response.status_code >= 500 and not _names_missing_service(case, response):
            wrong.append(
                f"{case.as_curl_command()[:500]} -> {response.status_code}: {response.text[:300]}"
            )
        try:
            case.validate_response(response, checks=CHECKS)
        except FailureGroup as group:
            failures = "; ".join(
                f"{error.title}: {error.message}"[:400] for error in group.exceptions
            )
            wrong.append(f"{case.as_curl_command()[:500]} -> {response.status_code}: {failures}")

    with suppress(Unsatisfiable):  # a call without parameters cannot be made wrong
        call()


def _names_missing_service(case: Case, response: Any) -> bool:
    """503 is right for a call that needs the trainer, which is not running here, and for the health
    of services that a busy machine keeps from answering in time."""
    kind = response.headers.get("content-type", [""])[0]
    expected = {NEEDS_TRAINER: "application/problem+json", "GET /api/health": "application/json"}
    return response.status_code == 503 and kind == expected.get(case.operation.label)
