"""Credentials and TLS for the connection to NATS."""

from __future__ import annotations

from ssl import SSLContext
from urllib.parse import urlsplit

import nats.errors
from faststream.nats.security import NatsSecurity, NatsUserPassword

from shared.runtime.logs import logger
from shared.runtime.settings import Settings
from shared.runtime.tls import client_context

log = logger()


def tls_context(settings: Settings) -> SSLContext | None:
    """None: no TLS."""
    if settings.nats_tls_ca is None:
        return None
    return client_context(settings.nats_tls_ca, settings.nats_tls_cert, settings.nats_tls_key)


def nats_security(settings: Settings) -> NatsSecurity:
    context = tls_context(settings)
    # Before anything else is sent, so that a server without TLS never gets the password.
    first = context is not None
    if not settings.nats_user:
        return NatsSecurity(ssl_context=context, tls_handshake_first=first)
    # Not in the URL: NATS does not unquote a password there.
    return NatsUserPassword(
        settings.nats_user,
        settings.nats_password.get_secret_value(),
        ssl_context=context,
        tls_handshake_first=first,
    )


def server_addresses(settings: Settings) -> str:
    parts = map(urlsplit, settings.nats_servers)
    return ", ".join(f"{part.hostname}:{part.port}" for part in parts)


async def log_connection_error(error: Exception) -> None:
    if not isinstance(error, nats.errors.SlowConsumerError):
        log.warning("NATS connection", error=repr(error))
