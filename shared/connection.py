"""How to connect to NATS: as whom, encrypted or not."""

from __future__ import annotations

from ssl import SSLContext
from urllib.parse import urlsplit

import nats.errors
from faststream.nats.security import NatsSecurity, NatsUserPassword

from shared.logs import logger
from shared.settings import Settings
from shared.tls import client_context

log = logger()


def tls_context(settings: Settings) -> SSLContext | None:
    """How to speak with NATS; None: in plain text."""
    if settings.nats_tls_ca is None:
        return None
    return client_context(settings.nats_tls_ca, settings.nats_tls_cert, settings.nats_tls_key)


def security_of(settings: Settings) -> NatsSecurity:
    context = tls_context(settings)
    # Before a word is said: who asks for plain text gets no password.
    first = context is not None
    if not settings.nats_user:
        return NatsSecurity(ssl_context=context, tls_handshake_first=first)
    # Not in the address: NATS takes a quoted password there as it stands.
    return NatsUserPassword(
        settings.nats_user,
        settings.nats_password.get_secret_value(),
        ssl_context=context,
        tls_handshake_first=first,
    )


def shown(settings: Settings) -> str:
    parts = map(urlsplit, settings.nats_servers)
    return ", ".join(f"{part.hostname}:{part.port}" for part in parts)


async def log_connection_error(error: Exception) -> None:
    if not isinstance(error, nats.errors.SlowConsumerError):
        log.warning("NATS connection", error=repr(error))
