"""Content-Encoding of requests and responses: gzip, deflate, lz4 and zstd."""

import gzip
import io
import sys
import zlib
from collections.abc import Callable
from typing import IO, Protocol, cast

import lz4.frame

from .errors import ClickHouseError, TooLarge

# A dependency of clickhouse-connect.
if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_OPEN: dict[str, Callable[[IO[bytes]], IO[bytes]]] = {
    "gzip": lambda source: cast(IO[bytes], gzip.GzipFile(fileobj=source)),
    "lz4": lambda source: cast(IO[bytes], lz4.frame.LZ4FrameFile(source)),
    "zstd": lambda source: cast(IO[bytes], zstd.ZstdFile(source)),
}
# Cheapest first: client and server share one machine's cores.
PREFERENCE = ("lz4", "zstd", "gzip", "deflate")


class Encoder(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


class _Lz4Encoder:
    """lz4 writes its frame header in a separate call."""

    def __init__(self) -> None:
        self._frame = lz4.frame.LZ4FrameCompressor()
        self._header: bytes = self._frame.begin()

    def compress(self, data: bytes, /) -> bytes:
        header, self._header = self._header, b""
        return header + cast(bytes, self._frame.compress(data))

    def flush(self) -> bytes:
        return cast(bytes, self._frame.flush())


def decode(body: bytes, encoding: str, limit: int) -> bytes:
    """The decoded body; one that is damaged, truncated or larger than `limit` is refused."""
    if encoding in ("", "identity"):
        return body
    if encoding != "deflate" and encoding not in _OPEN:
        message = f"Unknown Content-Encoding '{encoding}': use one of {', '.join(PREFERENCE)}."
        raise ClickHouseError.named(89, "UNKNOWN_COMPRESSION_METHOD", message)
    try:
        if encoding == "deflate":
            decompressor = zlib.decompressobj()
            plain = decompressor.decompress(body, limit + 1)
            if not decompressor.eof and len(plain) <= limit:
                raise EOFError("the stream ends too early")
        else:
            plain = _OPEN[encoding](io.BytesIO(body)).read(limit + 1)
    except (OSError, EOFError, RuntimeError, zlib.error, zstd.ZstdError) as error:
        message = f"Cannot decompress the {encoding} body: {error}."
        raise ClickHouseError.named(271, "CANNOT_DECOMPRESS", message) from None
    if len(plain) > limit:
        raise TooLarge(limit)
    return plain


def negotiate(accepted: str) -> str | None:
    """The encoding of the response; none if the client accepts none of ours."""
    accepts = {part.partition(";")[0].strip().lower() for part in accepted.split(",")}
    return next((name for name in PREFERENCE if name in accepts), None)


def encoder(name: str) -> Encoder:
    if name == "lz4":
        return _Lz4Encoder()
    if name == "zstd":
        return cast(Encoder, zstd.ZstdCompressor())
    return zlib.compressobj(level=3, wbits=31 if name == "gzip" else 15)
