"""Who is let in: rates, host names, what counts as one client."""

from __future__ import annotations

import pytest

from services.gateway.http.guard import AllowedHosts, RateLimit, client_of
from shared.runtime.settings import Settings


def test_a_client_may_call_in_a_burst_and_then_at_the_rate() -> None:
    rates = RateLimit(per_second=10)
    assert [rates.wait("a", 0.0) for _ in range(40)] == [0.0] * 40
    assert rates.wait("a", 0.0) == pytest.approx(0.1)
    assert rates.wait("a", 0.05) == pytest.approx(0.05)
    assert rates.wait("a", 0.1) == 0.0
    assert rates.wait("a", 0.1) == pytest.approx(0.1)
    assert rates.wait("b", 0.1) == 0.0
    # Being refused costs nothing; a long pause fills the bucket, and no further.
    assert sum(rates.wait("a", 100.0) == 0.0 for _ in range(100)) == 40


def test_a_rate_of_zero_is_no_limit() -> None:
    rates = RateLimit(per_second=0)
    assert not any(rates.wait("a", 0.0) for _ in range(10_000))


def test_a_slow_rate_still_lets_one_call_in() -> None:
    rates = RateLimit(per_second=0.1)
    assert rates.wait("a", 0.0) == 0.0
    assert rates.wait("a", 0.0) == pytest.approx(10.0)


def test_the_number_of_clients_in_memory_is_limited() -> None:
    rates = RateLimit(per_second=1, most_clients=100)
    for number in range(10_000):
        rates.wait(str(number), 0.0)
    assert len(rates) == 100
    for _ in range(4):
        rates.wait("9999", 0.0)
    assert rates.wait("9999", 0.0) > 0


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost:8000", True),
        ("127.0.0.1:8000", True),
        ("192.168.1.7", True),
        ("[::1]:8000", True),
        ("gateway:8000", True),
        ("arena.localhost", True),
        ("", True),
        ("evil.example", False),
        ("evil.example:8000", False),
        ("127.0.0.1.evil.example", False),
        ("1.2.3.4.5", False),
        ("evil.example.", False),
        ("[::1", False),
    ],
)
def test_host_names_that_an_attacker_can_register_are_refused(host: str, allowed: bool) -> None:
    assert AllowedHosts(Settings()).allow({"host": host}) == allowed


def test_the_settings_add_names() -> None:
    named = Settings(gateway_hosts="lab.example, arena.LAB.example ")
    for host in ("lab.example:8000", "ARENA.lab.example"):
        assert AllowedHosts(named).allow({"host": host})
    assert not AllowedHosts(named).allow({"host": "evil.example"})
    assert AllowedHosts(Settings(gateway_hosts="*")).allow({"host": "evil.example"})
    assert AllowedHosts(Settings(gateway_origins="https://lab.example")).allow(
        {"host": "lab.example"}
    )


def test_a_client_is_an_address_or_a_network_of_ipv6() -> None:
    assert client_of({"client": ("10.0.0.1", 5)}) == "10.0.0.1"
    one, two = client_of({"client": ("2001:db8::1", 5)}), client_of({"client": ("2001:db8::ff", 6)})
    assert one == two == "2001:db8::/64"
    assert client_of({"client": ("2001:db8:0:1::1", 5)}) != one
    assert client_of({"client": None}) == ""
