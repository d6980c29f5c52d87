"""How a client of the gateway waits: for its turn, and for an arena that is away."""

from __future__ import annotations

import pytest

from shared.errors import ArenaError, Unavailable
from shared.runtime import gateway_client
from shared.runtime.gateway_client import Refused, retry_when_rate_limited, retry_while_unavailable


class Responses:
    """Answers, or errors to raise, one after the other; and the pauses that were made between."""

    def __init__(self, *answers: str | ArenaError) -> None:
        self._answers = list(answers)
        self.pauses: list[float] = []

    def ask(self) -> str:
        answer = self._answers.pop(0)
        if isinstance(answer, ArenaError):
            raise answer
        return answer


def too_many(seconds: int) -> Refused:
    return Refused("calls come too fast", 429, {"Retry-After": str(seconds)})


def test_a_turn_is_waited_for_as_long_as_the_gateway_says() -> None:
    for wait in (retry_when_rate_limited, retry_while_unavailable):
        responses = Responses(too_many(3), too_many(1), "done")
        assert wait(responses.ask, responses.pauses.append) == "done"
        assert responses.pauses == [3, 1]


@pytest.mark.parametrize("status", [502, 503, 504, None])
def test_an_arena_that_is_away_is_waited_for(status: int | None) -> None:
    away = Unavailable("no arena answers") if status is None else Refused("away", status)
    responses = Responses(away, away, too_many(2), away, "done")
    assert retry_while_unavailable(responses.ask, responses.pauses.append) == "done"
    once = gateway_client.RETRY_SECONDS
    assert responses.pauses == [once, once, 2, once]
    responses = Responses(away, "done")
    with pytest.raises(type(away)):  # who only waits for a turn does not wait for that
        retry_when_rate_limited(responses.ask, responses.pauses.append)


@pytest.mark.parametrize("status", [400, 401, 404, 409, 500])
def test_a_refusal_is_final(status: int) -> None:
    responses = Responses(Refused("no", status), "done")
    with pytest.raises(Refused, match="no"):
        retry_while_unavailable(responses.ask, responses.pauses.append)
    assert responses.pauses == []


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_client, "RETRY_LIMIT_SECONDS", -1.0)
    responses = Responses(Unavailable("no arena answers"), "done")
    with pytest.raises(Unavailable):
        retry_while_unavailable(responses.ask, responses.pauses.append)
