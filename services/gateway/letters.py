"""Dead letters as the interface shows them: what they say of themselves, and what is in them."""

from __future__ import annotations

import json
import math
from typing import Any, Literal

from pydantic import BaseModel, Field

from services.gateway.arrowbody import read_columns
from services.gateway.shapes import example
from shared.deadletters import Letter
from shared.errors import SpecError
from shared.replays import hindrance

SHOWN_BYTES = 1024  # of a body that is neither Arrow nor text
SHOWN_TEXT = 20_000  # characters
LONGEST_VALUE = 200  # characters of a value in a row
LINE = 16  # bytes in a line of a hex dump

LETTER: dict[str, Any] = {
    "sequence": 17,
    "at": 1794816902.5,
    "service": "simulator",
    "subject": "decisions.1116-081502-6a1f.greedy",
    "stream": "DECISIONS",
    "origin": 4711,
    "reason": "gpu 7 of a cluster that has 4 (0 is the first)",
    "size": 5120,
    "hindrance": None,
}


class LetterRow(BaseModel):
    model_config = example(**LETTER)

    sequence: int = Field(description="its number among the dead letters")
    at: float = Field(description="when it was put aside")
    service: str = Field(description="who put it aside")
    subject: str = Field(description="where it came on; empty when it does not say")
    stream: str
    origin: int = Field(description="its sequence number there")
    reason: str
    size: int = Field(description="bytes of the message")
    hindrance: str | None = Field(description="why it can never be replayed; none: it may")


class LetterPage(BaseModel):
    model_config = example(letters=[LETTER], next_before=None, total=1, services={"simulator": 1})

    letters: list[LetterRow]
    next_before: int | None = Field(description="`before` of the next page; none: this is the last")
    total: int = Field(description="all dead letters, whatever was asked for")
    services: dict[str, int] = Field(description="how many each service has put aside")


class LetterDetail(LetterRow):
    headers: dict[str, str]
    kind: Literal["batch", "json", "text", "bytes"] = Field(description="what the body is")
    text: str = Field(description="the start of the body; bytes as a hex dump; empty for a batch")
    envelope: str = Field(description="what a batch says of itself, as it stands there")
    rows: list[dict[str, Any]] = Field(description="the first rows of a batch")
    count: int = Field(description="rows that the batch has")


class Resent(BaseModel):
    model_config = example(
        sequence=17,
        subject="decisions.1116-081502-6a1f.greedy",
        stored_as=4911,
        note="sent again on decisions.1116-081502-6a1f.greedy",
    )

    sequence: int
    subject: str
    stored_as: int | None = Field(description="its new number there; none: nothing was to be done")
    note: str


class Purged(BaseModel):
    model_config = example(purged=3, complete=True)

    purged: int
    complete: bool = Field(description="whether that were all; if not, ask again")


def row_of(letter: Letter) -> LetterRow:
    return LetterRow(**_said(letter))


def detail_of(letter: Letter, rows: int) -> LetterDetail:
    shown = _batch(letter.body, rows) or _readable(letter.body)
    return LetterDetail(
        **_said(letter),
        headers=letter.headers,
        **{"text": "", "envelope": "", "rows": [], "count": 0, **shown},
    )


def _said(letter: Letter) -> dict[str, Any]:
    names = ("sequence", "at", "service", "subject", "stream", "origin", "reason", "size")
    return {**{name: getattr(letter, name) for name in names}, "hindrance": hindrance(letter)}


def _batch(body: bytes, rows: int) -> dict[str, Any] | None:
    """Any Arrow stream, whatever was wrong with its values."""
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
    """What JSON has a way to write; the rest as a person would read it."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return value[:LONGEST_VALUE]
    return str(value)[:LONGEST_VALUE]


def _readable(body: bytes) -> dict[str, Any]:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return {"kind": "bytes", "text": hex_dump(body[:SHOWN_BYTES])}
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
