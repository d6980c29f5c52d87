"""How a client of the gateway waits: for its turn, and for an arena that is away."""

from __future__ import annotations

import pytest

from shared import gateway
from shared.errors import ArenaError, Unavailable
from shared.gateway import Refused, in_turn, patiently


class Said:
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
    for wait in (in_turn, patiently):
        said = Said(too_many(3), too_many(1), "done")
        assert wait(said.ask, said.pauses.append) == "done"
        assert said.pauses == [3, 1]


@pytest.mark.parametrize("status", [502, 503, 504, None])
def test_an_arena_that_is_away_is_waited_for(status: int | None) -> None:
    away = Unavailable("no arena answers") if status is None else Refused("away", status)
    said = Said(away, away, too_many(2), away, "done")
    assert patiently(said.ask, said.pauses.append) == "done"
    once = gateway.AWAY_SECONDS
    assert said.pauses == [once, once, 2, once]
    said = Said(away, "done")
    with pytest.raises(type(away)):  # who only waits for a turn does not wait for that
        in_turn(said.ask, said.pauses.append)


@pytest.mark.parametrize("status", [400, 401, 404, 409, 500])
def test_a_refusal_is_final(status: int) -> None:
    said = Said(Refused("no", status), "done")
    with pytest.raises(Refused, match="no"):
        patiently(said.ask, said.pauses.append)
    assert said.pauses == []


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "PATIENCE_SECONDS", -1.0)
    said = Said(Unavailable("no arena answers"), "done")
    with pytest.raises(Unavailable):
        patiently(said.ask, said.pauses.append)
