"""An arena's certificates: made once, readable by the owner only, renewed in time."""

from __future__ import annotations

import ssl
import stat
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from deploy.local import certificates
from deploy.local.certificates import load_or_make


def test_certificates_are_kept_and_their_keys_are_private(tmp_path: Path) -> None:
    files = load_or_make(tmp_path / "tls")
    before = [path.read_bytes() for path in (files.authority, files.certificate, files.key)]
    assert load_or_make(tmp_path / "tls") == files
    assert before == [path.read_bytes() for path in (files.authority, files.certificate, files.key)]
    for key in (files.key, tmp_path / "tls" / "ca.key"):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_the_certificate_is_signed_by_the_authority_for_this_machine(tmp_path: Path) -> None:
    files = load_or_make(tmp_path)
    authority = x509.load_pem_x509_certificate(files.authority.read_bytes())
    certificate = x509.load_pem_x509_certificate(files.certificate.read_bytes())
    certificate.verify_directly_issued_by(authority)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    ssl.create_default_context().load_cert_chain(files.certificate, files.key)


def test_a_certificate_about_to_expire_is_renewed_by_the_same_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "CERTIFICATE_LIFETIME", timedelta(days=29))
    files = load_or_make(tmp_path)
    authority, old = files.authority.read_bytes(), files.certificate.read_bytes()
    monkeypatch.undo()
    load_or_make(tmp_path)
    renewed = files.certificate.read_bytes()
    assert renewed != old
    assert files.authority.read_bytes() == authority
    load_or_make(tmp_path)
    assert files.certificate.read_bytes() == renewed
