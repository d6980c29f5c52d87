"""The body of a dead letter in readable form."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from services.gateway.rejected.schemas import LetterDetail, LetterRow
from services.gateway.tasks.arrow_body import read_columns
from shared.bus.dead_letter_replay import replay_obstacle
from shared.bus.dead_letters import Letter
from shared.errors import SpecError

SHOWN_BYTES = 1024  # of a body that is neither Arrow nor text
SHOWN_TEXT = 20_000  # characters
LONGEST_VALUE = 200  # characters of a value in a row
LINE = 16  # bytes in a line of a hex dump


def row_of(letter: Letter) -> LetterRow:
    return LetterRow(**_fields(letter))


def detail_of(letter: Letter, rows: int) -> LetterDetail:
    body = _batch(letter.body, rows) or _text(letter.body)
    empty: dict[str, Any] = {"text": "", "envelope": "", "rows": [], "count": 0}
    return LetterDetail(**_fields(letter), **{**empty, **body})


def _fields(letter: Letter) -> dict[str, Any]:
    return {**asdict(letter), "replay_obstacle": replay_obstacle(letter)}


def _batch(body: bytes, rows: int) -> dict[str, Any] | None:
    """Any Arrow stream, even if its values are invalid."""
    try:
        table = read_columns(body)
    except SpecError:
        return None
    envelope = (table.schema.metadata or {}).get(b"envelope", b"")
    return {
        "kind": "batch",
        "envelope": envelope.decode(errors="replace")[:SHOWN_TEXT],
        "rows": [
            {str(name): _plain(value) for name, value in row.items()}
            for row in table.slice(0, rows).to_pylist()
        ],
        "count": table.num_rows,
    }


def _plain(value: Any) -> Any:
    """A value that JSON can represent; all others as text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return value[:LONGEST_VALUE]
    return str(value)[:LONGEST_VALUE]


def _text(body: bytes) -> dict[str, Any]:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = ""
    if not text or not all(char.isprintable() or char.isspace() for char in text):
        return {"kind": "bytes", "text": hex_dump(body[:SHOWN_BYTES])}
    return {"kind": "json" if _is_json(text) else "text", "text": text[:SHOWN_TEXT]}


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def hex_dump(body: bytes) -> str:
    lines = []
    for start in range(0, len(body), LINE):
        piece = body[start : start + LINE]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        lines.append(f"{start:06x}  {piece.hex(' '):<{3 * LINE}} {text}")
    return "\n".join(lines)
