"""ClickHouse's HTTP interface without I/O: from a request to a `Query`, and the summary header."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from email import policy
from email.parser import BytesParser

from . import sql
from .errors import ClickHouseError

# Parameters of the interface itself; every other one is a setting for the engine.
# Those of sessions and asynchronous inserts are accepted and ignored: requests are independent, and
# every insert is stored before the response.
_INTERFACE = {
    "add_http_cors_header", "async_insert", "buffer_size",
    "cancel_http_readonly_queries_on_client_close", "client_protocol_version", "close_session",
    "compress", "database", "decompress", "default_format", "enable_http_compression",
    "http_headers_progress_interval_ms", "http_zlib_compression_level", "password", "query",
    "query_id", "quota_key", "role", "send_progress_in_http_headers", "session_check",
    "session_id", "session_timeout", "stacktrace", "user", "wait_end_of_query",
    "wait_for_async_insert",
}  # fmt: skip
_SETTING_NAME = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_PARAMETER = "param_"
# For statements, not the rows of an insert. The engine's own limit, `max_query_size`, is 256 KiB
# unless a request raises it.
_MAX_STATEMENT_BYTES = 1 << 20

_CONTENT_TYPES = {
    "TabSeparated": "text/tab-separated-values; charset=UTF-8",
    "TSV": "text/tab-separated-values; charset=UTF-8",
    "CSV": "text/csv; charset=UTF-8; header=absent",
    "CSVWithNames": "text/csv; charset=UTF-8; header=present",
    "JSON": "application/json; charset=UTF-8",
    "JSONCompact": "application/json; charset=UTF-8",
    "JSONEachRow": "application/x-ndjson; charset=UTF-8",
    "JSONCompactEachRow": "application/x-ndjson; charset=UTF-8",
    **dict.fromkeys(("Arrow", "ArrowStream", "Native", "Parquet"), "application/octet-stream"),
    **dict.fromkeys(("RowBinary", "RowBinaryWithNamesAndTypes"), "application/octet-stream"),
}


@dataclass(frozen=True, slots=True)
class Query:
    """One statement with its formats, settings and parameters."""

    text: bytes
    output_format: str = "TabSeparated"
    # Start of the final FORMAT clause in the text; the text's end if there is none.
    format_position: int = 0
    # Set for an INSERT with rows; then `text` ends where they would start.
    input_format: str | None = None
    # Where that statement would name a file with the rows.
    source_position: int = 0
    data: bytes = b""
    database: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    wait_end_of_query: bool = False

    @property
    def content_type(self) -> str:
        return _CONTENT_TYPES.get(self.output_format, "text/plain; charset=UTF-8")


@dataclass(frozen=True, slots=True)
class Summary:
    """The counters that ClickHouse sends as X-ClickHouse-Summary."""

    read_rows: int = 0
    read_bytes: int = 0
    written_rows: int = 0
    written_bytes: int = 0
    result_rows: int = 0
    elapsed_ns: int = 0

    def to_header(self) -> str:
        # As strings: JavaScript's numbers do not have 64 bits.
        return json.dumps({name: str(getattr(self, name)) for name in self.__slots__})


def parse_query(
    params: Sequence[tuple[str, str]], headers: Mapping[str, str], body: bytes
) -> Query | None:
    """The query of a request; none if it is empty."""
    values = dict(params)
    if headers.get("content-type", "").startswith("multipart/form-data"):
        values |= _form_fields(headers["content-type"], body)
        body = b""
    for name in ("compress", "decompress"):
        if _truthy(values.get(name, "0")):
            message = f"{name}=1 is not supported: use Accept-Encoding or Content-Encoding."
            raise ClickHouseError.named(48, "NOT_IMPLEMENTED", message)
    parameters = {
        name.removeprefix(_PARAMETER): value
        for name, value in values.items()
        if name.startswith(_PARAMETER)
    }
    in_url = values.get("query", "").encode("utf-8", "surrogateescape")
    head = _insert_head(in_url or body, parameters)
    # A statement without rows may be split between URL and body.
    text = in_url + b"\n" + body if in_url and body and head is None else in_url or body
    if not text.strip():
        return None
    default_format = headers.get("x-clickhouse-format") or values.get("default_format")
    query = Query(
        text=text,
        output_format=default_format or "TabSeparated",
        format_position=len(text),
        database=values.get("database") or headers.get("x-clickhouse-database") or None,
        settings=_settings(values),
        parameters=parameters,
        wait_end_of_query=_truthy(values.get("wait_end_of_query", "0")),
    )
    if head is not None:
        rows = text[head.data_start :]
        if in_url:
            rows = rows + b"\n" + body if rows.strip() else body
        return replace(
            query,
            text=text[: head.statement_end],
            input_format=head.format,
            source_position=head.source_position,
            data=rows,
        )
    if len(text) > _MAX_STATEMENT_BYTES:
        message = f"Syntax error: Max query size exceeded ({_MAX_STATEMENT_BYTES} bytes)."
        raise ClickHouseError.named(62, "SYNTAX_ERROR", message)
    if b"\0" in text:
        # The engine would silently ignore everything after it.
        message = "Syntax error: a zero byte in the statement, write it as \\0."
        raise ClickHouseError.named(62, "SYNTAX_ERROR", message)
    if sql.writes_outfile(text):
        message = "INTO OUTFILE is not allowed."
        raise ClickHouseError.named(358, "INTO_OUTFILE_NOT_ALLOWED", message)
    clause = sql.output_format(text)
    if clause is None:
        return query
    return replace(query, output_format=clause[0], format_position=clause[1])


def _insert_head(text: bytes, parameters: Mapping[str, str]) -> sql.InsertHead | None:
    head = sql.insert_head(text)
    # The engine replaces parameters only in a complete statement.
    return None if head and head.format == "Values" and parameters else head


def _settings(values: Mapping[str, str]) -> dict[str, str]:
    settings = {
        name: value
        for name, value in values.items()
        if name not in _INTERFACE and not name.startswith(_PARAMETER)
    }
    for name in settings:
        # The name becomes part of a SET statement, so it must be a name.
        if not _SETTING_NAME.match(name):
            raise ClickHouseError.named(115, "UNKNOWN_SETTING", f"Unknown setting '{name}'.")
    return settings


def _form_fields(content_type: str, body: bytes) -> dict[str, str]:
    """The text fields of a form, in which clickhouse-connect sends long parameters."""
    head = b"Content-Type: " + content_type.encode() + b"\r\n\r\n"
    message = BytesParser(policy=policy.HTTP).parsebytes(head + body)
    if not message.is_multipart():
        raise ClickHouseError.named(117, "INCORRECT_DATA", "Cannot read the multipart form.")
    fields: dict[str, str] = {}
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        if part.get_filename() is not None or not isinstance(name, str):
            reason = "External data tables are not supported: insert into a table first."
            raise ClickHouseError.named(48, "NOT_IMPLEMENTED", reason)
        payload = part.get_payload(decode=True)
        text = payload if isinstance(payload, bytes) else b""
        fields[name] = text.decode("utf-8", "surrogateescape")
    return fields


def _truthy(value: str) -> bool:
    return value.lower() not in ("", "0", "false")
