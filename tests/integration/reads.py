"""How much of a table a query reads."""

from __future__ import annotations

from typing import Any

from shared.settings import Settings
from shared.store.client import Store

# ClickHouse reads whole granules, of 8192 rows.
GRANULE = 8192


class Reads(Store):
    """A store that notes how many rows each query read."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.read_rows: list[int] = []

    def query(self, sql: str, parameters: Any = None) -> list[dict[str, Any]]:
        result = self._try(lambda client: client.query(sql, parameters=dict(parameters or {})))
        self.read_rows.append(int(result.summary["read_rows"]))
        return list(result.named_results())
