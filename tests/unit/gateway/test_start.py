"""The start of the gateway: its warning, and the proxies it trusts."""

from __future__ import annotations

from typing import Any

import pytest
import uvicorn
from pydantic import SecretStr
from structlog.testing import capture_logs

from services.gateway import app as gateway
from services.gateway.http.guard import client_of
from shared.bus.service import Service
from shared.runtime.settings import Settings


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
def test_a_gateway_that_anyone_can_change_logs_a_warning(
    host: str, token: str, warned: bool
) -> None:
    with capture_logs() as lines:
        gateway.check_openness(Settings(http_host=host, gateway_token=SecretStr(token)))
    assert [line["log_level"] for line in lines] == ["warning"] * warned
    assert all("HYBRID_GATEWAY_TOKEN" in line["event"] for line in lines)


@pytest.mark.parametrize("published", ["0.0.0.0:8000", "8000", "192.168.1.5:80", "[::]:8000"])
def test_a_gateway_for_the_network_without_a_token_refuses_to_start(published: str) -> None:
    settings = Settings(http_host="0.0.0.0", gateway_published=published)
    with pytest.raises(SystemExit) as refused:
        gateway.check_openness(settings)
    for part in (
        f"HYBRID_PUBLISH={published}",
        "deploy/make-env",
        "HYBRID_GATEWAY_ALLOW_OPEN=true",
    ):
        assert part in str(refused.value)
    gateway.check_openness(settings.model_copy(update={"gateway_token": SecretStr("secret")}))
    with capture_logs() as lines:
        gateway.check_openness(settings.model_copy(update={"gateway_allow_open": True}))
    assert [line["log_level"] for line in lines] == ["warning"]


@pytest.mark.parametrize("published", ["127.0.0.1:8000", "localhost:80", "[::1]:8000"])
def test_a_container_that_is_published_to_its_own_machine_needs_no_token(published: str) -> None:
    with capture_logs() as lines:
        gateway.check_openness(Settings(http_host="0.0.0.0", gateway_published=published))
    assert lines == []


@pytest.mark.parametrize(
    ("proxy", "client"), [("10.42.3.4", "192.0.2.9"), ("10.43.0.1", "10.43.0.1")]
)
async def test_a_trusted_proxy_says_who_the_client_is(
    monkeypatch: pytest.MonkeyPatch, proxy: str, client: str
) -> None:
    monkeypatch.setenv("HYBRID_GATEWAY_TRUSTED_PROXIES", "127.0.0.1,10.42.0.0/16")
    options: dict[str, Any] = {}
    monkeypatch.setattr(Service, "run", lambda self, app, **kwargs: options.update(kwargs))
    gateway.main()
    clients: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        clients.append(client_of(scope))

    served = uvicorn.Config(app, log_config=None, **options)
    served.load()
    headers = [(b"x-forwarded-for", b"192.0.2.9")]
    scope = {"type": "http", "client": (proxy, 5000), "headers": headers, "scheme": "http"}
    await served.loaded_app(scope, None, None)
    assert clients == [client]
