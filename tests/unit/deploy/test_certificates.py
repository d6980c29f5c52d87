"""An arena's own certificates: made once, for the owner alone, renewed in time."""

from __future__ import annotations

import ssl
import stat
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from deploy.local import certificates
from deploy.local.certificates import Certificates


def test_they_stay_and_the_keys_are_private(tmp_path: Path) -> None:
    made = Certificates.load_or_make(tmp_path / "tls")
    before = [path.read_bytes() for path in (made.authority, made.certificate, made.key)]
    assert Certificates.load_or_make(tmp_path / "tls") == made
    assert before == [path.read_bytes() for path in (made.authority, made.certificate, made.key)]
    for key in (made.key, tmp_path / "tls" / "ca.key"):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_the_certificate_is_the_authoritys_and_for_this_machine(tmp_path: Path) -> None:
    made = Certificates.load_or_make(tmp_path)
    authority = x509.load_pem_x509_certificate(made.authority.read_bytes())
    shown = x509.load_pem_x509_certificate(made.certificate.read_bytes())
    shown.verify_directly_issued_by(authority)
    places = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert places.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(ip) for ip in places.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert not shown.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    ssl.create_default_context().load_cert_chain(made.certificate, made.key)


def test_one_that_is_about_to_end_is_renewed_by_the_same_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "CERTIFICATE_LASTS", timedelta(days=29))
    made = Certificates.load_or_make(tmp_path)
    authority, old = made.authority.read_bytes(), made.certificate.read_bytes()
    monkeypatch.undo()
    Certificates.load_or_make(tmp_path)
    renewed = made.certificate.read_bytes()
    assert renewed != old
    assert made.authority.read_bytes() == authority
    Certificates.load_or_make(tmp_path)
    assert made.certificate.read_bytes() == renewed
