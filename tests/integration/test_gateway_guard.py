"""Every call that changes something is guarded."""

from __future__ import annotations

from pydantic import SecretStr

from tests.integration.arena import Arena
from tests.integration.gateway import assert_problem, serving

MUTATING = [
    ("POST", "/api/runs"),
    ("POST", "/api/simulation/start"),
    ("POST", "/api/simulation/pause"),
    ("POST", "/api/simulation/resume"),
    ("POST", "/api/simulation/stop"),
    ("POST", "/api/pause"),
    ("POST", "/api/resume"),
    ("POST", "/api/tasks"),
    ("POST", "/api/runs/{run}/tasks"),
    ("POST", "/api/models/{run}/{name}/rollback"),
    ("DELETE", "/api/history"),
    ("POST", "/api/rejected/{sequence}/replay"),
    ("DELETE", "/api/rejected/{sequence}"),
    ("DELETE", "/api/rejected"),
]


async def test_calls_that_change_something_need_the_token(full_arena: Arena) -> None:
    await full_arena.start("recorder")
    await full_arena.schedulers("greedy")
    settings = full_arena.settings.model_copy(update={"gateway_token": SecretStr("s3cret")})
    wrong = ["", "Bearer", "Bearer wrong", "Bearer s3cre", "Basic s3cret", "s3cret2"]
    async with serving(settings) as http:
        for method, path in MUTATING:
            for given in (None, *wrong):
                headers = {} if given is None else {"authorization": given}
                answer = await http.request(method, path, headers=headers)
                assert_problem(answer, 401, "Bearer <token>")
                assert answer.headers["www-authenticate"] == "Bearer"
        assert (await http.get("/api/runs")).json() == []  # reading needs none
        right = {"authorization": "Bearer s3cret"}
        answer = await http.post("/api/runs", headers=right, json={"pace": 1})
        assert answer.status_code == 201
        answer = await http.delete("/api/history", headers=right)
        assert answer.status_code == 200


async def test_every_call_that_is_no_get_is_guarded(full_arena: Arena) -> None:
    """The list above is all there is."""
    async with serving(full_arena.settings) as http:
        paths = (await http.get("/openapi.json")).json()["paths"]
    found = {
        (method.upper(), path)
        for path, methods in paths.items()
        for method in methods
        if method != "get"
    }
    # Checking a spec changes nothing.
    assert found == {*MUTATING, ("POST", "/api/runs/check")}
