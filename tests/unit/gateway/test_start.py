"""How the gateway is started: whom it warns, and whose word it takes for a client's address."""

from __future__ import annotations

from typing import Any

import pytest
import uvicorn
from pydantic import SecretStr
from structlog.testing import capture_logs

from services.gateway import app as gateway
from services.gateway.guard import client_of
from shared.service import Service
from shared.settings import Settings


@pytest.mark.parametrize(
    ("host", "token", "warned"),
    [
        ("127.0.0.1", "", False),
        ("localhost", "", False),
        ("::1", "", False),
        ("0.0.0.0", "", True),
        ("192.168.1.7", "", True),
        ("::", "", True),
        ("0.0.0.0", "secret", False),
    ],
)
def test_a_gateway_that_all_may_change_runs_with_is_warned_of(
    host: str, token: str, warned: bool
) -> None:
    with capture_logs() as said:
        gateway.warn_if_open(Settings(http_host=host, gateway_token=SecretStr(token)))
    assert [line["log_level"] for line in said] == ["warning"] * warned
    assert all("HYBRID_GATEWAY_TOKEN" in line["event"] for line in said)


@pytest.mark.parametrize(
    ("proxy", "client"), [("10.42.3.4", "192.0.2.9"), ("10.43.0.1", "10.43.0.1")]
)
async def test_a_trusted_proxy_says_who_the_client_is(
    monkeypatch: pytest.MonkeyPatch, proxy: str, client: str
) -> None:
    monkeypatch.setenv("HYBRID_GATEWAY_TRUSTED_PROXIES", "127.0.0.1,10.42.0.0/16")
    options: dict[str, Any] = {}
    monkeypatch.setattr(Service, "run", lambda self, app, **given: options.update(given))
    gateway.main()
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(client_of(scope))

    served = uvicorn.Config(app, log_config=None, **options)
    served.load()
    headers = [(b"x-forwarded-for", b"192.0.2.9")]
    scope = {"type": "http", "client": (proxy, 5000), "headers": headers, "scheme": "http"}
    await served.loaded_app(scope, None, None)
    assert seen == [client]
