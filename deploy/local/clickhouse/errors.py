"""One exception for everything a client may be told, in ClickHouse's own words."""

import re

_MESSAGE = re.compile(r"Code: (\d+)\. ")

# As ClickHouse's HTTP handler maps its error codes; what is not listed is a 500.
_BAD_REQUEST = {
    6,  # CANNOT_PARSE_TEXT
    26,  # CANNOT_PARSE_QUOTED_STRING
    27,  # CANNOT_PARSE_INPUT_ASSERTION_FAILED
    38,  # CANNOT_PARSE_DATE
    41,  # CANNOT_PARSE_DATETIME
    44,  # ILLEGAL_COLUMN
    53,  # TYPE_MISMATCH
    62,  # SYNTAX_ERROR
    69,  # ARGUMENT_OUT_OF_BOUND
    72,  # CANNOT_PARSE_NUMBER
    89,  # UNKNOWN_COMPRESSION_METHOD
    117,  # INCORRECT_DATA
    271,  # CANNOT_DECOMPRESS
    376,  # CANNOT_PARSE_UUID
    456,  # UNKNOWN_QUERY_PARAMETER
    457,  # BAD_QUERY_PARAMETER
}
_NOT_FOUND = {
    46,  # UNKNOWN_FUNCTION
    47,  # UNKNOWN_IDENTIFIER
    50,  # UNKNOWN_TYPE
    56,  # UNKNOWN_STORAGE
    60,  # UNKNOWN_TABLE
    63,  # UNKNOWN_AGGREGATE_FUNCTION
    73,  # UNKNOWN_FORMAT
    78,  # UNKNOWN_TYPE_OF_QUERY
    81,  # UNKNOWN_DATABASE
    115,  # UNKNOWN_SETTING
}
_STATUS = (
    dict.fromkeys(_BAD_REQUEST, 400)
    | dict.fromkeys(_NOT_FOUND, 404)
    | {
        48: 501,  # NOT_IMPLEMENTED
        159: 408,  # TIMEOUT_EXCEEDED
        210: 503,  # NETWORK_ERROR
        497: 403,  # ACCESS_DENIED
        516: 403,  # AUTHENTICATION_FAILED
    }
)

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
        """What chdb raises is a RuntimeError whose text holds `Code: N. DB::Exception: ...`."""
        text = str(error).strip()
        found = _MESSAGE.search(text)
        if found is None:
            return cls.named(UNKNOWN_EXCEPTION, "UNKNOWN_EXCEPTION", text)
        return cls(int(found[1]), text[found.start() :])


class TooLarge(ClickHouseError):
    """The body is larger than this server takes."""

    def __init__(self, limit: int) -> None:
        text = f"Request body is larger than {limit} bytes: send smaller batches"
        super().__init__(307, f"Code: 307. DB::Exception: {text}. (TOO_MANY_BYTES)", status=413)
