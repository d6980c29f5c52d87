"""Where ClickHouse is looked for."""

from __future__ import annotations

from typing import Any

import clickhouse_connect
import pytest
from clickhouse_connect.driver.exceptions import OperationalError

from shared.runtime.settings import Settings
from shared.store.client import Store


@pytest.mark.parametrize(
    ("address", "port"),
    [
        ("http://store", 8123),
        ("https://store", 8443),
        ("http://store:9000", 9000),
        ("https://store:9000", 9000),
    ],
)
def test_an_address_without_a_port_means_the_one_that_clickhouse_has(
    address: str, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def connect(**options: Any) -> None:
        asked.append(options["port"])
        raise OperationalError("nobody there")

    monkeypatch.setattr(clickhouse_connect, "get_client", connect)
    assert Store(Settings(clickhouse_url=address)).ping() == "nobody there"
    assert asked == [port]
