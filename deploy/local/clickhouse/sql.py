"""The part of ClickHouse's lexer that splits an INSERT from its data and finds the FORMAT."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

# An unclosed token runs to the end: retrying after each of its characters would take quadratic
# time.
_TOKEN = re.compile(
    rb"""
      (?P<blank>\s+|--[^\n]*|\#[\ !][^\n]*|/\*.*?(?:\*/|\Z))
    | (?P<text>'(?:[^'\\]|\\.|'')*(?:'|\Z)|\$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|\Z))
    | (?P<name>"(?:[^"\\]|\\.|"")*(?:"|\Z)|`(?:[^`\\]|\\.|``)*(?:`|\Z))
    | (?P<word>[A-Za-z_][\w$]*)
    | (?P<open>[(\[{])
    | (?P<close>[)\]}])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token outside all brackets; `word` is upper case, and empty if the token is not a word."""

    word: bytes
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class InsertHead:
    """`INSERT INTO t (a, b)` without its data.

    `source_position` is where `FROM INFILE` would stand: before the settings.
    """

    source_position: int
    statement_end: int
    format: str
    data_start: int


def outer_tokens(sql: bytes) -> Iterator[Token]:
    depth = 0
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
        elif kind != "blank" and depth == 0:
            word = match[0].upper() if kind == "word" else b""
            yield Token(word, match.start(), match.end())


def insert_head(sql: bytes) -> InsertHead | None:
    """None for statements without data."""
    tokens = outer_tokens(sql)
    first = next(tokens, None)
    if first is None or first.word != b"INSERT":
        return None
    target_seen = False
    settings_start: int | None = None
    for token in tokens:
        if not target_seen:
            # The table may have any name, even `values` or `format`.
            target_seen = token.word not in (b"INTO", b"TABLE", b"FUNCTION")
        elif token.word == b"SETTINGS" and settings_start is None:
            settings_start = token.start
        elif token.word == b"VALUES":
            return InsertHead(settings_start or token.start, token.start, "Values", token.end)
        elif token.word == b"FORMAT":
            name = next(tokens, None)
            if name is None or not name.word:
                return None
            return InsertHead(
                settings_start or token.start,
                token.start,
                sql[name.start : name.end].decode(),
                _data_start(sql, name.end),
            )
        elif token.word in (b"SELECT", b"WITH", b"FROM"):
            return None
    return None


def _data_start(sql: bytes, position: int) -> int:
    """ClickHouse's rule: data starts after the first newline, or after the blanks."""
    while sql[position : position + 1] in (b" ", b"\t", b"\f"):
        position += 1
    if sql[position : position + 1] == b"\r":
        position += 1
    if sql[position : position + 1] == b"\n":
        position += 1
    return position


def output_format(sql: bytes) -> tuple[str, int] | None:
    """The name and position of a final `FORMAT x` clause, if the statement has one."""
    tokens = list(outer_tokens(sql))
    last: tuple[str, int] | None = None
    for clause, name, after in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
        if clause.word == b"FORMAT" and name.word:
            next_character = sql[after.start : after.start + 1] if after else b";"
            if next_character == b";" or (after and after.word == b"SETTINGS"):
                last = sql[name.start : name.end].decode(), clause.start
    return last


def writes_outfile(sql: bytes) -> bool:
    words = [token.word for token in outer_tokens(sql)]
    return (b"INTO", b"OUTFILE") in pairwise(words)
