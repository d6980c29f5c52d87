"""Ed25519 signatures of models. Only the trainer has the secret key. Keys are 32 bytes in hex."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


def new_key() -> str:
    return Ed25519PrivateKey.generate().private_bytes_raw().hex()


def public_key(key: str) -> str:
    return _private(key).public_key().public_bytes_raw().hex()


def sign(key: str, text: str) -> str:
    return _private(key).sign(text.encode()).hex()


def is_signed(public: str, text: str, signature: str) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(
            bytes.fromhex(signature), text.encode()
        )
    except (InvalidSignature, ValueError):
        return False
    return True


def _private(key: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(key))
