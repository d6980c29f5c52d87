"""ClickHouse behind one small class, the same for the embedded engine and a real server.

Calls block; services on an event loop use them through `asyncio.to_thread`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import clickhouse_connect
import pyarrow as pa
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError, DatabaseError

from shared.errors import Unavailable
from shared.settings import Settings
from shared.store.schema import MIGRATIONS

_ASKED = re.compile(r" with url: \S+")


class StoreError(Unavailable):
    """ClickHouse does not answer, or refused what it was asked."""


class SchemaTooNew(StoreError):
    """A newer version of the program has changed the tables."""


class Store:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clients = threading.local()

    def _client(self) -> Client:
        """One client a thread: they are not made to be shared."""
        client: Client | None = getattr(self._clients, "client", None)
        if client is None:
            self._create_database()
            client = self._connect(self._settings.clickhouse_database)
            self._clients.client = client
        return client

    def _connect(self, database: str) -> Client:
        parts = urlsplit(self._settings.clickhouse_url)
        secure = parts.scheme == "https"
        authority = self._settings.clickhouse_tls_ca
        try:
            return clickhouse_connect.get_client(
                host=parts.hostname or "127.0.0.1",
                port=parts.port or (8443 if secure else 8123),
                secure=secure,
                ca_cert=str(authority) if authority else None,
                username=self._settings.clickhouse_user,
                password=self._settings.clickhouse_password.get_secret_value(),
                database=database,
                connect_timeout=5,
                send_receive_timeout=60,
                autogenerate_session_id=False,
            )
        except ClickHouseError as error:
            raise StoreError(_reason(error)) from None

    def _create_database(self) -> None:
        with self._connect("default") as client:
            client.command(f"CREATE DATABASE IF NOT EXISTS `{self._settings.clickhouse_database}`")

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Rows as dictionaries."""
        result = self._try(lambda client: client.query(sql, parameters=dict(parameters or {})))
        return list(result.named_results())

    def table(self, sql: str, parameters: Mapping[str, Any] | None = None) -> pa.Table:
        """Rows as columns: for thousands of them."""
        given = dict(parameters or {})
        answer = self._try(lambda client: client.query_arrow(sql, given, use_strings=True))
        assert isinstance(answer, pa.Table)
        return answer

    def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Any:
        return self._try(lambda client: client.command(sql, parameters=dict(parameters or {})))

    def insert(self, table: str, rows: pa.Table, *, token: str) -> None:
        """Insert and wait until it is stored. The same token again inserts nothing."""
        settings = {"insert_deduplication_token": token, "async_insert": 0}
        self._try(lambda client: client.insert_arrow(table, rows, settings=settings))

    def migrate(self) -> list[str]:
        """Bring the tables up to date; returns the migrations that were run."""
        self.command(
            "CREATE TABLE IF NOT EXISTS schema_migrations (version UInt32, name String, "
            "applied_at DateTime64(3, 'UTC') DEFAULT now64(3)) "
            "ENGINE = ReplacingMergeTree ORDER BY version"
        )
        done = {row["version"] for row in self.query("SELECT version FROM schema_migrations")}
        unknown = done - {migration.version for migration in MIGRATIONS}
        if unknown:
            raise SchemaTooNew(
                f"the database has schema version {max(unknown)}, which is newer than this "
                f"program ({MIGRATIONS[-1].version}): upgrade the program or use another database"
            )
        ran = []
        for migration in MIGRATIONS:
            if migration.version in done:
                continue
            for statement in migration.statements:
                self.command(statement)
            self.command(
                "INSERT INTO schema_migrations (version, name) VALUES ({v:UInt32}, {n:String})",
                {"v": migration.version, "n": migration.name},
            )
            ran.append(migration.name)
        return ran

    def ping(self) -> str | None:
        """None when ClickHouse answers, else what is wrong."""
        try:
            self.query("SELECT 1 AS one")
        except StoreError as error:
            return str(error)
        return None

    def close(self) -> None:
        client: Client | None = getattr(self._clients, "client", None)
        if client is not None:
            client.close()
            self._clients.client = None

    def _try(self, call: Any) -> Any:
        try:
            return call(self._client())
        except ClickHouseError as error:
            # A connection that broke is made anew by the next call.
            if not isinstance(error, DatabaseError):
                self.close()
            raise StoreError(_reason(error)) from None


def _reason(error: ClickHouseError) -> str:
    """Its first line, without the address that was asked, which holds the whole query."""
    lines = str(error).strip().splitlines()
    return _ASKED.sub("", lines[0]) if lines else repr(error)
