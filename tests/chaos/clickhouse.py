"""ClickHouse as the checker sees it: SQL over HTTP in, columns out. No code of the product."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
import numpy as np
import pyarrow as pa

Columns = dict[str, Any]  # a numpy array each; of lists: an Arrow array


class ClickHouse:
    def __init__(self, url: str, user: str, password: str, database: str) -> None:
        self._http = httpx.Client(
            base_url=url,
            params={"database": database},
            headers={"X-ClickHouse-User": user, "X-ClickHouse-Key": password},
            timeout=300,
        )

    def rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        answer = self._ask(f"{sql} FORMAT JSONEachRow", parameters)
        return [json.loads(line) for line in answer.splitlines()]

    def columns(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Columns:
        """Without rows there may be no columns either."""
        answer = self._ask(f"{sql} FORMAT ArrowStream", parameters)
        if not answer:
            return {}
        with pa.ipc.open_stream(answer) as reader:
            table = reader.read_all().combine_chunks()
        return {name: _column(table.column(name)) for name in table.column_names}

    def command(self, sql: str) -> None:
        self._ask(sql, None)

    def _ask(self, sql: str, parameters: Mapping[str, Any] | None) -> bytes:
        named = {f"param_{name}": str(value) for name, value in (parameters or {}).items()}
        answer = self._http.post("/", content=sql.encode(), params=named)
        if not answer.is_success:
            raise RuntimeError(f"{sql.strip()}: {answer.text}")
        return answer.content

    def close(self) -> None:
        self._http.close()


def _column(column: pa.ChunkedArray) -> Any:
    array = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_list(array.type):
        return array
    return np.asarray(array.to_numpy(zero_copy_only=False))


def bits(column: Any) -> Any:
    """Something that is equal only if every bit is."""
    if isinstance(column, pa.Array):
        return np.array([tuple(items) for items in column.to_pylist()] + [None], object)[:-1]
    return column.view(np.int64) if column.dtype == np.float64 else column


def pick(columns: Columns, rows: Any) -> Columns:
    return {
        name: column.take(pa.array(np.flatnonzero(rows)))
        if isinstance(column, pa.Array)
        else column[rows]
        for name, column in columns.items()
    }
