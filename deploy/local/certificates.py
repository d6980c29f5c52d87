"""A certificate authority for one arena, and the certificate that its servers show.

Made on first start in the arena's folder. A client that trusts `ca.pem` trusts this arena only.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
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

from deploy.local.arena import Certificates
from deploy.local.private_files import write_private

AUTHORITY_LIFETIME = timedelta(days=3650)
CERTIFICATE_LIFETIME = timedelta(days=397)
RENEW_BEFORE_EXPIRY = timedelta(days=30)
# Clocks differ a little.
CLOCK_TOLERANCE = timedelta(hours=1)


def load_or_make(folder: Path, names: Sequence[str] = ("localhost",)) -> Certificates:
    """The folder's certificates; one that is about to expire, or lacks a name, is renewed."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = Certificates.of(folder)
    authority_key = folder / "ca.key"
    if not (files.authority.exists() and authority_key.exists()):
        _make_authority(files.authority, authority_key)
        files.certificate.unlink(missing_ok=True)
    if not files.certificate.exists() or not _is_valid(files.certificate, names):
        _make_certificate(files, authority_key, names)
    return files


def _make_authority(path: Path, key_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("Hybrid ML Scheduler, this arena's authority")
    signed = (
        _builder(name, name, key, AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    write_private(key_path, _pem(key))
    path.write_bytes(signed.public_bytes(Encoding.PEM))


def _make_certificate(files: Certificates, authority_key: Path, names: Sequence[str]) -> None:
    authority = x509.load_pem_x509_certificate(files.authority.read_bytes())
    signer = load_pem_private_key(authority_key.read_bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    names_and_addresses: list[x509.GeneralName] = [
        *(x509.DNSName(name) for name in names),
        *(x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", "::1")),
    ]
    # Nodes of a NATS cluster are each other's clients.
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    signed = (
        _builder(_name("Hybrid ML Scheduler"), authority.subject, key, CERTIFICATE_LIFETIME)
        .add_extension(x509.SubjectAlternativeName(names_and_addresses), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(signer, hashes.SHA256())
    )
    write_private(files.key, _pem(key))
    files.certificate.write_bytes(signed.public_bytes(Encoding.PEM))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, lifetime: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_TOLERANCE)
        .not_valid_after(now + lifetime)
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


def _is_valid(path: Path, names: Sequence[str]) -> bool:
    """For all these names, and not about to expire."""
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    missing = set(names) - set(extension.value.get_values_for_type(x509.DNSName))
    return not missing and certificate.not_valid_after_utc - RENEW_BEFORE_EXPIRY > datetime.now(UTC)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
