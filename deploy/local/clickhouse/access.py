"""Users and passwords, and the restrictions of the read-only user."""

import base64
import binascii
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass

from .errors import ClickHouseError

ANALYST = "analyst"

# Table functions that stay inside the engine. An allowlist, so that those of a newer engine are
# refused until they have been checked.
_SAFE_TABLE_FUNCTIONS = {
    "format", "generate_series", "generaterandom", "generateseries", "loop", "merge",
    "mergetreeindex", "mergetreeprojection", "null", "numbers", "numbers_mt", "primes",
    "values", "view", "zeros", "zeros_mt",
}  # fmt: skip
# Settings that the analyst may send with a request; the engine refuses all others. Only harmless
# ones: some output settings name files (`output_format_schema`).
_ANALYST_SETTINGS = re.compile(
    r"max_\w+|output_format_json_\w+|date_time_output_format|final|join_use_nulls"
    r"|session_timezone|timeout_overflow_mode|use_query_cache|log_comment"
)
_LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL)
_NAME = re.compile(r"(?:`((?:[^`\\]|\\.)+)`|([A-Za-z_]\w*))(\s*\()?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class User:
    name: str
    password: str
    readonly: bool = False


class Users:
    """The users of this server, by name."""

    def __init__(self, *users: User) -> None:
        self._users = {user.name: user for user in users}

    def authenticate(self, headers: Mapping[str, str], params: Mapping[str, str]) -> User:
        name, password = _credentials(headers, params)
        user = self._users.get(name)
        expected = user.password if user else ""
        # Compared for unknown names too, so that the time does not reveal which users exist.
        matches = hmac.compare_digest(
            expected.encode("utf-8", "surrogateescape"), password.encode("utf-8", "surrogateescape")
        )
        if user is None or not matches:
            message = (
                f"{name}: Authentication failed: password is incorrect, "
                "or there is no user with such name."
            )
            raise ClickHouseError.named(516, "AUTHENTICATION_FAILED", message)
        return user


def _credentials(headers: Mapping[str, str], params: Mapping[str, str]) -> tuple[str, str]:
    """In ClickHouse's order: its own headers, HTTP basic, URL parameters, `default`."""
    if "x-clickhouse-user" in headers or "x-clickhouse-key" in headers:
        return headers.get("x-clickhouse-user", "default"), headers.get("x-clickhouse-key", "")
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            pair = base64.b64decode(token.strip(), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            message = "Invalid authentication: the Basic credentials are not base64."
            raise ClickHouseError.named(516, "AUTHENTICATION_FAILED", message) from None
        name, _, password = pair.partition(":")
        return name, password
    return params.get("user", "default"), params.get("password", "")


def analyst_may_set(setting: str) -> bool:
    return _ANALYST_SETTINGS.fullmatch(setting) is not None


def refuse_outside_functions(
    canonical: str, table_functions: frozenset[str], outside_functions: frozenset[str]
) -> None:
    """Refuse functions that reach host or network, which the engine's `readonly=1` allows.

    `canonical` is the statement as the engine formats it, so that quoting, escapes and comments
    cannot hide a name. A scalar function can be used without a call (`arrayMap(file, ...)`,
    `APPLY file`), so its name is refused anywhere.
    """
    for quoted, plain, call in _NAME.findall(_LITERAL.sub("''", canonical)):
        name = (quoted or plain).lower()
        outside_table = name in table_functions and name not in _SAFE_TABLE_FUNCTIONS
        if name in outside_functions or (call and outside_table):
            message = f"{ANALYST}: Not enough privileges. `{name}` reaches outside the database."
            raise ClickHouseError.named(497, "ACCESS_DENIED", message)
