"""TLS contexts of clients."""

from __future__ import annotations

import ssl
from pathlib import Path


def client_context(
    authority: Path, certificate: Path | None = None, key: Path | None = None
) -> ssl.SSLContext:
    """Trusts only servers whose certificate this CA has signed."""
    context = ssl.create_default_context(cafile=authority)
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    return context
