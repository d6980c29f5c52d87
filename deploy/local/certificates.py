"""A private authority for one arena, and the certificate that its servers show.

Made on first start in the arena's folder. Who trusts `ca.pem` trusts this arena and nothing else.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from deploy.local.private import write_private

AUTHORITY_LASTS = timedelta(days=3650)
CERTIFICATE_LASTS = timedelta(days=397)
RENEWED_BEFORE = timedelta(days=30)
# Clocks differ a little.
BACKDATED = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Certificates:
    authority: Path
    certificate: Path
    key: Path

    @classmethod
    def of(cls, folder: Path) -> Certificates:
        return cls(folder / "ca.pem", folder / "server.pem", folder / "server.key")

    @classmethod
    def load_or_make(cls, folder: Path, names: Sequence[str] = ("localhost",)) -> Certificates:
        """Those of the folder; a certificate that is about to end, or lacks a name, is renewed."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = cls.of(folder)
        authority_key = folder / "ca.key"
        if not (made.authority.exists() and authority_key.exists()):
            _make_authority(made.authority, authority_key)
            made.certificate.unlink(missing_ok=True)
        if not made.certificate.exists() or not _serves(made.certificate, names):
            _make_certificate(made, authority_key, names)
        return made


def _make_authority(path: Path, key_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("Hybrid ML Scheduler, this arena's authority")
    signed = (
        _builder(name, name, key, AUTHORITY_LASTS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    write_private(key_path, _pem(key))
    path.write_bytes(signed.public_bytes(Encoding.PEM))


def _make_certificate(made: Certificates, authority_key: Path, names: Sequence[str]) -> None:
    authority = x509.load_pem_x509_certificate(made.authority.read_bytes())
    signer = load_pem_private_key(authority_key.read_bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    places: list[x509.GeneralName] = [
        *(x509.DNSName(name) for name in names),
        *(x509.IPAddress(ipaddress.ip_address(place)) for place in ("127.0.0.1", "::1")),
    ]
    # Nodes of a NATS cluster are each other's clients.
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    signed = (
        _builder(_name("Hybrid ML Scheduler"), authority.subject, key, CERTIFICATE_LASTS)
        .add_extension(x509.SubjectAlternativeName(places), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(signer, hashes.SHA256())
    )
    write_private(made.key, _pem(key))
    made.certificate.write_bytes(signed.public_bytes(Encoding.PEM))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, lasts: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + lasts)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _serves(path: Path, names: Sequence[str]) -> bool:
    """For all these names, and for a while yet."""
    shown = x509.load_pem_x509_certificate(path.read_bytes())
    places = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    named = set(names) <= set(places.get_values_for_type(x509.DNSName))
    return named and shown.not_valid_after_utc - RENEWED_BEFORE > datetime.now(UTC)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
