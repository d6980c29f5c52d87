"""deploy/compose.tls.yml: every service uses TLS only and trusts the authority."""

from __future__ import annotations

import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
import yaml
from cryptography import x509

from deploy.certificates import make
from deploy.local.arena import Certificates
from shared.runtime.settings import Settings
from tests.unit.deploy.test_compose import OURS, ROOT, SERVICES, check_nats

COMPOSE = yaml.safe_load((ROOT / "deploy/compose.tls.yml").read_text())
ADDED: dict[str, dict[str, Any]] = COMPOSE["services"]
PROMETHEUS = ROOT / "deploy/prometheus"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates") / "tls", ["arena.example.org"])


def mounted(service: str) -> dict[str, str]:
    """The files of a container, by path."""
    files = {}
    for volume in ADDED[service]["volumes"]:
        if isinstance(volume, str):
            source, target, mode = volume.split(":")
            assert mode == "ro"
        else:
            assert (volume["type"], volume["read_only"]) == ("bind", True)
            source, target = volume["source"], volume["target"]
        files[target] = source
    return files


@pytest.mark.parametrize("name", OURS)
def test_our_services_use_tls_only_and_trust_the_authority(name: str) -> None:
    variables = ADDED[name]["environment"]
    expected = {"HYBRID_NATS_TLS_CA", "HYBRID_HTTP_TLS_CERT", "HYBRID_HTTP_TLS_KEY"}
    if "HYBRID_CLICKHOUSE_URL" in SERVICES[name]["environment"]:
        expected |= {"HYBRID_CLICKHOUSE_TLS_CA", "HYBRID_CLICKHOUSE_URL"}
        assert variables["HYBRID_CLICKHOUSE_URL"] == "https://clickhouse:8123"
    assert variables.keys() == expected
    assert expected <= {f"HYBRID_{field.upper()}" for field in Settings.model_fields}
    for setting in expected - {"HYBRID_CLICKHOUSE_URL"}:
        assert mounted(name)[variables[setting]].endswith(Path(variables[setting]).name)


def test_the_certificate_has_the_hosts_names(certificates: Certificates) -> None:
    certificate = x509.load_pem_x509_certificate(certificates.certificate.read_bytes())
    extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    names = set(extension.get_values_for_type(x509.DNSName))
    assert {"localhost", "gateway", "nats", "clickhouse", "arena.example.org"} <= names
    assert urlsplit(ADDED["gateway"]["environment"]["HYBRID_CLICKHOUSE_URL"]).hostname in names


def test_only_the_owner_and_the_containers_can_read_the_key(certificates: Certificates) -> None:
    folder = certificates.key.parent
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.iterdir()]}
    assert modes["tls"] == 0o700
    # The containers' users do not own it; the authority's key is in no container.
    assert modes["server.key"] == 0o644
    assert modes["ca.key"] == 0o600
    assert not any("ca.key" in source for name in ADDED for source in mounted(name).values())


def test_nats_accepts_its_configuration(tmp_path: Path, certificates: Certificates) -> None:
    (source,) = (source for source in mounted("nats").values() if source.endswith(".conf"))
    text = (ROOT / source).read_text()
    assert "handshake_first: true" in text
    assert {"/tls/ca.pem", "/tls/server.pem", "/tls/server.key"} <= mounted("nats").keys()
    (tmp_path / "arena.conf").write_text(text.replace("/tls/", f"{certificates.key.parent}/"))
    shutil.copy(ROOT / "deploy/nats/users.conf", tmp_path)
    check_nats(tmp_path / "arena.conf", SERVICES["nats"]["environment"], "0099")


def test_clickhouse_has_only_a_tls_port() -> None:
    (source,) = (source for source in mounted("clickhouse").values() if source.endswith(".xml"))
    config = ElementTree.parse(ROOT / source).getroot()
    ports = {each.tag: each.text for each in config if each.tag.endswith("_port")}
    removed = {each.tag for each in config if each.get("remove")}
    assert [port for port in ports.items() if port[0] not in removed] == [("https_port", "8123")]
    assert {"http_port", "tcp_port"} <= removed
    for file in ("certificateFile", "privateKeyFile"):
        assert config.findtext(f"openSSL/server/{file}") in mounted("clickhouse")
    assert "https://127.0.0.1:8123/ping" in ADDED["clickhouse"]["healthcheck"]["test"]


def test_prometheus_scrapes_the_same_over_tls() -> None:
    plain = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
    secured = yaml.safe_load((PROMETHEUS / "prometheus.tls.yml").read_text())
    for job in plain["scrape_configs"]:
        job["scheme"] = "https"
        job["tls_config"] = {"ca_file": "/tls/ca.pem", "server_name": "gateway"}
    assert secured == plain
    assert mounted("prometheus").keys() == {"/etc/prometheus/prometheus.yml", "/tls/ca.pem"}


def test_the_command_adds_a_name_to_an_existing_certificate(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "deploy.certificates", tmp_path / "tls"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    files = Certificates.of(tmp_path / "tls")
    assert str(files.authority) in output
    authority, first = files.authority.read_bytes(), files.certificate.read_bytes()
    subprocess.run(command, check=True, capture_output=True)
    assert files.certificate.read_bytes() == first
    subprocess.run([*command, "arena.example.org"], check=True, capture_output=True)
    assert files.certificate.read_bytes() != first
    assert files.authority.read_bytes() == authority
