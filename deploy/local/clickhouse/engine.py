"""chdb, the ClickHouse engine in this process, behind a small class without HTTP."""

import os
import threading
from pathlib import Path
from typing import Any, TextIO

from .. import lock
from .access import refuse_outside_functions
from .connection import (
    QueryResult,
    Stream,
    can_stream,
    engine_errors,
    insert,
    prepare,
    quote_name,
    select,
)
from .errors import ClickHouseError
from .protocol import Query


class FolderUnusable(Exception):
    """The data folder cannot be used; the message says what to do."""


class Engine:
    """One engine on one folder, for any number of threads.

    Every query gets a new connection (0.2 ms). Connections to one path share the tables and run in
    parallel, while settings, parameters and the current database belong to a connection, so that
    requests cannot affect each other.
    """

    def __init__(self, path: Path) -> None:
        self._lock_file = _lock_folder(path)
        # chdb would read a config.xml in the current folder.
        os.chdir(path)
        # Imported once the folder is locked: it takes half a second and 300 MB.
        from chdb import _chdb

        self._connect: Any = _chdb.connect  # type: ignore[attr-defined]
        # An insert is stored before the response; `async_insert` is on by default in this engine.
        self._address = f"{path}?async_insert=0"
        self._idle = threading.Condition()
        self._open = 0
        try:
            # The engine lives as long as one connection is open.
            self._root = self._connect(self._address)
        except RuntimeError as error:
            self._lock_file.close()
            reason = str(error).strip().splitlines()[0]
            raise FolderUnusable(
                f"the engine cannot open {path} ({reason}): repair or empty it, "
                "or give another --path"
            ) from None
        self.version = self.run_internal("SELECT version()")
        self.timezone = self.run_internal("SELECT timezone()")
        names = self.run_internal("SELECT DISTINCT lower(name) FROM system.table_functions")
        self._table_functions = frozenset(names.split("\n"))
        names = self.run_internal(
            "SELECT DISTINCT lower(name) FROM system.functions WHERE name ILIKE 'ai%'"
        )
        self._outside_functions = frozenset({"file", "python", "eval", *names.split("\n")})

    def create_database(self, name: str) -> None:
        self._root.query(f"CREATE DATABASE IF NOT EXISTS {quote_name(name)}")

    def execute(self, query: Query, *, readonly: int = 0) -> QueryResult:
        """Run one query. `readonly` as in ClickHouse: 1 for the analyst, 2 also allows settings."""
        if readonly == 1:
            self._check_analyst(query)
        elif b";" in query.text.rstrip(b"; \t\r\n"):
            self._check_single(query)
        with engine_errors():
            connection = self._acquire()
            stream: Stream | None = None
            try:
                prepare(connection, query, readonly)
                if query.input_format is not None:
                    return insert(connection, query)
                if can_stream(query):
                    stream = Stream(connection, query, self._release)
                    return stream.begin()
                return select(connection, query)
            finally:
                if stream is None or stream.finished:
                    self._release(connection)

    def run_internal(self, statement: str) -> str:
        """A statement of the server itself; the result is tab-separated."""
        connection = self._acquire()
        try:
            result: bytes = connection.query(statement, "TSVRaw").bytes()
            return result.decode().rstrip("\n")
        finally:
            self._release(connection)

    def close(self, timeout: float) -> bool:
        """Close the engine after the running queries; false if they take longer than `timeout`."""
        with self._idle:
            if not self._idle.wait_for(lambda: self._open == 0, timeout):
                return False
        self._root.close()
        self._lock_file.close()
        return True

    def _acquire(self) -> Any:
        with self._idle:
            self._open += 1
        try:
            return self._connect(self._address)
        except BaseException:
            self._leave()
            raise

    def _release(self, connection: Any) -> None:
        try:
            connection.close()
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._idle:
            self._open -= 1
            self._idle.notify_all()

    def _check_single(self, query: Query) -> None:
        if self._root.classify_query(_full_text(query))["statement_count"] > 1:
            message = "Syntax error (Multi-statements are not allowed)."
            raise ClickHouseError.named(62, "SYNTAX_ERROR", message)

    def _check_analyst(self, query: Query) -> None:
        self._check_single(query)
        query_class = self._root.classify_query(_full_text(query))
        if query_class["statement_count"] == 1 and query_class["query_class"].name != "READ_ONLY":
            message = "analyst: Cannot execute query in readonly mode."
            raise ClickHouseError.named(164, "READONLY", message)
        text = query.text.decode("utf-8", "replace")
        # The check below needs text; the parser might read other bytes differently.
        if "\ufffd" in text:
            message = "Syntax error: the statement is not UTF-8."
            raise ClickHouseError.named(62, "SYNTAX_ERROR", message)
        escaped = text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")
        with engine_errors():
            canonical: bytes = self._root.query(
                "SELECT formatQuerySingleLine({statement:String})",
                "TSVRaw",
                params={"statement": escaped},
            ).bytes()
        refuse_outside_functions(
            canonical.decode("utf-8", "surrogateescape"),
            self._table_functions,
            self._outside_functions,
        )


def _lock_folder(path: Path) -> TextIO:
    if "?" in str(path):
        raise FolderUnusable(f"{path} has a '?' in its name: give another --path")
    try:
        path.mkdir(parents=True, exist_ok=True)
        return lock.take(path / "embedded.lock")
    except lock.Held as held:
        raise FolderUnusable(
            f"{path} is in use by process {held.owner}: stop it or give another --path"
        ) from None
    except OSError as error:
        raise FolderUnusable(
            f"cannot write to {path} ({error.strerror}): make it writable or give another --path"
        ) from None


def _full_text(query: Query) -> bytes:
    if query.input_format is None:
        return query.text
    return query.text + b" FORMAT " + query.input_format.encode()
