"""A small ClickHouse client, the same for the embedded engine and a real server.

Calls block; services on an event loop use them through `asyncio.to_thread`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import clickhouse_connect
import pyarrow as pa
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError, DatabaseError

from shared.errors import ArenaError, Unavailable
from shared.runtime.settings import Settings
from shared.store.schema import MIGRATIONS, TABLES

# ClickHouse error codes of statements that no retry will make valid: a value of the wrong type, an
# unknown column, a syntax error. Others (no space, too many parts, a missing table) may pass.
PERMANENT_CODES = {
    *(6, 10, 16, 20, 26, 27, 36, 38, 41, 42, 43, 44, 46, 47, 48, 50, 53, 62, 69, 70, 72, 80),
    *(117, 130, 131, 179, 190, 207, 349, 386, 407, 441, 636),
}
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_REQUEST_URL = re.compile(r" with url: \S+")


class StoreError(ArenaError):
    """A statement that ClickHouse did not carry out."""


class StoreUnavailable(StoreError, Unavailable):
    """ClickHouse does not answer, or cannot carry out the statement now."""


class StatementRefused(StoreError):
    """ClickHouse will never carry out this statement."""


class SchemaTooNew(StoreError):
    """A newer version of the program has changed the tables."""


class Store:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clients = threading.local()

    def _client(self) -> Client:
        """One client per thread: they are not thread-safe."""
        client: Client | None = getattr(self._clients, "client", None)
        if client is None:
            self._create_database()
            client = self._connect(self._settings.clickhouse_database)
            self._clients.client = client
        return client

    def _connect(self, database: str) -> Client:
        parts = urlsplit(self._settings.clickhouse_url)
        secure = parts.scheme == "https"
        host = parts.hostname or "127.0.0.1"
        authority = self._settings.clickhouse_tls_ca
        try:
            return clickhouse_connect.get_client(
                host=host,
                port=parts.port or (8443 if secure else 8123),
                secure=secure,
                ca_cert=str(authority) if authority else None,
                username=self._settings.clickhouse_user,
                password=self._settings.clickhouse_password.get_secret_value(),
                database=database,
                connect_timeout=5,
                send_receive_timeout=60,
                autogenerate_session_id=False,
                # Saves a network bytes, and costs a machine CPU that talks to itself.
                compress=host not in LOOPBACK,
            )
        except ClickHouseError as error:
            raise StoreUnavailable(_reason(error)) from None

    def _create_database(self) -> None:
        with self._connect("default") as client:
            client.command(f"CREATE DATABASE IF NOT EXISTS `{self._settings.clickhouse_database}`")

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Rows as dictionaries."""
        result = self._try(lambda client: client.query(sql, parameters=dict(parameters or {})))
        return list(result.named_results())

    def table(self, sql: str, parameters: Mapping[str, Any] | None = None) -> pa.Table:
        """Rows as an Arrow table, for thousands of them."""
        values = dict(parameters or {})
        table = self._try(lambda client: client.query_arrow(sql, values, use_strings=True))
        assert isinstance(table, pa.Table)
        return table

    def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Any:
        return self._try(lambda client: client.command(sql, parameters=dict(parameters or {})))

    def insert(self, table: str, rows: pa.Table, *, token: str) -> None:
        """Insert and wait until it is stored. The same token again inserts nothing."""
        settings = {
            "insert_deduplication_token": token,
            "async_insert": 0,
            # Rows of one key replace each other when parts are merged, and in queries with FINAL:
            # looking for them in each insert costs a fifth of it.
            "optimize_on_insert": 0,
        }
        self._try(lambda client: client.insert_arrow(table, rows, settings=settings))

    def migrate(self) -> list[str]:
        """Run the migrations that the database has not had yet; returns their names."""
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
        if not done:
            # A new database: two recorders that altered the same tables would wait for each other.
            for table in TABLES.values():
                self.command(table.create_newest_statement())
        ran = []
        for migration in MIGRATIONS:
            if migration.version in done:
                continue
            for statement in migration.statements if done else ():
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

    def _try(self, call: Callable[[Client], Any]) -> Any:
        try:
            return call(self._client())
        except ClickHouseError as error:
            if not isinstance(error, DatabaseError):
                self.close()  # the next call opens a new connection
            code = getattr(error, "code", None)
            kind = StatementRefused if code in PERMANENT_CODES else StoreUnavailable
            raise kind(_reason(error)) from None


def _reason(error: ClickHouseError) -> str:
    """The first line, without the URL of the request, which contains the whole statement."""
    lines = str(error).strip().splitlines()
    return _REQUEST_URL.sub("", lines[0]) if lines else repr(error)
