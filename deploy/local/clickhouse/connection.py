"""One query on one connection of the engine: prepare, insert or select, stream the result."""

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from tempfile import NamedTemporaryFile
from typing import Any

from .access import analyst_may_set
from .errors import ClickHouseError
from .protocol import Query, Summary

# chdb formats a stream block by block, so only formats without header and footer can be joined.
_STREAMABLE = {
    "CSV", "JSONCompactEachRow", "JSONEachRow", "Native", "RowBinary", "TSV", "TSVRaw",
    "TabSeparated", "TabSeparatedRaw",
}  # fmt: skip
# A stream leaves out totals and extremes, and refuses WITH ... INSERT.
_NOT_STREAMABLE = re.compile(rb"totals|extremes|insert", re.IGNORECASE)
# Buffered before the status is sent, so that an early error gets its own; ClickHouse's default.
_BUFFER_BYTES = 1 << 20


class QueryResult:
    """The result of a query: its first bytes, and the rest on demand."""

    def __init__(self, head: bytes, summary: Summary, rest: "Stream | None" = None) -> None:
        self.head = head
        self.summary = summary
        self._rest = rest

    @property
    def complete(self) -> bool:
        return self._rest is None

    def next_chunk(self) -> bytes:
        """The next part of the result, empty at its end."""
        return self._rest.next_chunk() if self._rest else b""

    def close(self) -> None:
        if self._rest:
            self._rest.close()


class Stream:
    """A running SELECT read block by block; owns its connection until closed."""

    def __init__(self, connection: Any, query: Query, release: Callable[[Any], None]) -> None:
        self._release = release
        self._connection = connection
        self._query = query
        self._lock = threading.Lock()
        self.finished = True
        self._handle = connection.send_query(
            query.text, query.output_format, params=query.parameters
        )

    def begin(self) -> QueryResult:
        blocks: list[bytes] = []
        size = rows = 0
        while size < _BUFFER_BYTES:
            block = self._connection.streaming_fetch_result(self._handle)
            if block is None or block.rows_read() == 0:
                head = b"".join(blocks) or _empty_native(self._connection, self._query)
                return QueryResult(head, Summary(result_rows=rows))
            blocks.append(block.bytes())
            size += len(blocks[-1])
            rows += block.rows_read()
        self.finished = False
        return QueryResult(b"".join(blocks), Summary(result_rows=rows), self)

    def next_chunk(self) -> bytes:
        with self._lock, engine_errors():
            if self.finished:
                return b""
            block = self._connection.streaming_fetch_result(self._handle)
            return block.bytes() if block is not None and block.rows_read() else b""

    def close(self) -> None:
        # A cancelled request may have left a fetch running in its thread: wait for it.
        with self._lock:
            if self.finished:
                return
            self.finished = True
            # Cancelling a finished query is an error.
            with suppress(RuntimeError):
                self._connection.streaming_cancel_query(self._handle)
            self._release(self._connection)


@contextmanager
def engine_errors() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise ClickHouseError.from_engine(error) from None


def quote_name(name: str) -> str:
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def _set(connection: Any, settings: dict[str, str]) -> None:
    if settings:
        pairs = (
            name + "='" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
            for name, value in settings.items()
        )
        statement = "SET " + ", ".join(pairs)
        connection.query(statement.encode("utf-8", "surrogateescape"))


def prepare(connection: Any, query: Query, readonly: int) -> None:
    if query.database:
        connection.query(f"USE {quote_name(query.database)}")
    if not readonly:
        _set(connection, query.settings)
        return
    allowed = query.settings
    if readonly == 1:
        allowed = {name: value for name, value in allowed.items() if analyst_may_set(name)}
    _set(connection, allowed | {"readonly": str(readonly)})
    # Now that it is read-only, the engine itself refuses the others.
    _set(connection, {name: query.settings[name] for name in query.settings.keys() - allowed})


def insert(connection: Any, query: Query) -> QueryResult:
    """Through a file, since chdb's own `send_insert` reports success even when the engine could not
    store the rows, as on a full disk or with too many parts."""
    with _as_file(query.data) as path:
        head, settings = query.text[: query.source_position], query.text[query.source_position :]
        source = f" FROM INFILE '{path}' ".encode()
        statement = head + source + settings + b" FORMAT " + (query.input_format or "").encode()
        return QueryResult(b"", _summary(connection.query(statement)))


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """The path of a file with these bytes, in memory where the system supports it."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("insert"), "wb") as file:
            file.write(data)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            yield file.name


def select(connection: Any, query: Query) -> QueryResult:
    result = connection.query(query.text, query.output_format, params=query.parameters)
    body: bytes = result.bytes()
    return QueryResult(body or _empty_native(connection, query), _summary(result))


def _summary(result: Any) -> Summary:
    return Summary(
        read_rows=result.storage_rows_read(),
        read_bytes=result.storage_bytes_read(),
        written_rows=result.rows_written(),
        written_bytes=result.bytes_written(),
        result_rows=result.rows_read(),
        elapsed_ns=int(result.elapsed() * 1e9),
    )


def can_stream(query: Query) -> bool:
    return (
        not query.wait_end_of_query
        and query.output_format in _STREAMABLE
        and query.text.lstrip()[:6].upper().startswith((b"SELECT", b"WITH"))
        and "extremes" not in query.settings
        and not _NOT_STREAMABLE.search(query.text)
    )


def _empty_native(connection: Any, query: Query) -> bytes:
    """The block without rows that lists the columns; chdb leaves it out."""
    if query.output_format != "Native":
        return b""
    statement = b"DESCRIBE TABLE (" + query.text[: query.format_position] + b"\n)"
    try:
        columns = connection.query(statement, "TSVRaw", params=query.parameters).bytes()
    except RuntimeError:
        return b""  # not a SELECT, so it has no columns
    fields = [line.split(b"\t")[:2] for line in columns.splitlines()]
    names = b"".join(_varint_text(name) + _varint_text(kind) for name, kind in fields)
    return _varint(len(fields)) + _varint(0) + names


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _varint_text(text: bytes) -> bytes:
    return _varint(len(text)) + text
