"""The error responses, with ClickHouse's codes, names and texts."""

import re

_MESSAGE = re.compile(r"Code: (\d+)\. ")

# HTTP statuses of ClickHouse's error codes, as in its own server; any other code is a 500.
_BAD_REQUEST = (
    6, 26, 27, 38, 41, 72, 376,  # CANNOT_PARSE_: text, string, input, date, time, number, UUID
    44, 53, 62, 69,  # ILLEGAL_COLUMN, TYPE_MISMATCH, SYNTAX_ERROR, ARGUMENT_OUT_OF_BOUND
    89, 117, 271,  # UNKNOWN_COMPRESSION_METHOD, INCORRECT_DATA, CANNOT_DECOMPRESS
    456, 457,  # UNKNOWN_QUERY_PARAMETER, BAD_QUERY_PARAMETER
)  # fmt: skip
_NOT_FOUND = (  # UNKNOWN_:
    46, 47, 50, 56, 60,  # function, identifier, type, storage, table
    63, 73, 78, 81, 115,  # aggregate function, format, type of query, database, setting
)  # fmt: skip
_STATUS = dict.fromkeys(_BAD_REQUEST, 400) | dict.fromkeys(_NOT_FOUND, 404)
_STATUS[48] = 501  # NOT_IMPLEMENTED
_STATUS[159] = 408  # TIMEOUT_EXCEEDED
_STATUS[210] = 503  # NETWORK_ERROR
_STATUS[497] = _STATUS[516] = 403  # ACCESS_DENIED, AUTHENTICATION_FAILED

UNKNOWN_EXCEPTION = 1002


class ClickHouseError(Exception):
    """A refused request: ClickHouse's error code, the text to send and the HTTP status."""

    def __init__(self, code: int, text: str, *, status: int | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.status = status or _STATUS.get(code, 500)

    @classmethod
    def named(
        cls, code: int, name: str, message: str, *, status: int | None = None
    ) -> "ClickHouseError":
        return cls(code, f"Code: {code}. DB::Exception: {message} ({name})", status=status)

    @classmethod
    def from_engine(cls, error: Exception) -> "ClickHouseError":
        """chdb raises a RuntimeError whose text contains `Code: N. DB::Exception: ...`."""
        text = str(error).strip()
        match = _MESSAGE.search(text)
        if match is None:
            return cls.named(UNKNOWN_EXCEPTION, "UNKNOWN_EXCEPTION", text)
        return cls(int(match[1]), text[match.start() :])


class TooLarge(ClickHouseError):
    """The body is larger than this server accepts."""

    def __init__(self, limit: int) -> None:
        text = f"Request body is larger than {limit} bytes: send smaller batches"
        super().__init__(307, f"Code: 307. DB::Exception: {text}. (TOO_MANY_BYTES)", status=413)
