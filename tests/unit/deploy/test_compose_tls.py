"""What deploy/compose.tls.yml adds: all have the files, trust the authority, speak TLS alone."""

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
from deploy.local.certificates import Certificates
from shared.settings import Settings
from tests.unit.deploy.test_compose import OURS, ROOT, SERVICES, check_nats

ADDED: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "deploy/compose.tls.yml").read_text())[
    "services"
]
PROMETHEUS = ROOT / "deploy/prometheus"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("made") / "tls", ["arena.example.org"])


def mounted(service: str) -> dict[str, str]:
    """Which file a container sees at which path."""
    found = {}
    for volume in ADDED[service]["volumes"]:
        if isinstance(volume, str):
            source, target, mode = volume.split(":")
            assert mode == "ro"
        else:
            assert (volume["type"], volume["read_only"]) == ("bind", True)
            source, target = volume["source"], volume["target"]
        found[target] = source
    return found


@pytest.mark.parametrize("name", OURS)
def test_our_services_speak_tls_alone_and_trust_the_authority(name: str) -> None:
    given = ADDED[name]["environment"]
    wanted = {"HYBRID_NATS_TLS_CA", "HYBRID_HTTP_TLS_CERT", "HYBRID_HTTP_TLS_KEY"}
    if "HYBRID_CLICKHOUSE_URL" in SERVICES[name]["environment"]:
        wanted |= {"HYBRID_CLICKHOUSE_TLS_CA", "HYBRID_CLICKHOUSE_URL"}
        assert given["HYBRID_CLICKHOUSE_URL"] == "https://clickhouse:8123"
    assert given.keys() == wanted
    assert wanted <= {f"HYBRID_{field.upper()}" for field in Settings.model_fields}
    for setting in wanted - {"HYBRID_CLICKHOUSE_URL"}:
        assert mounted(name)[given[setting]].endswith(Path(given[setting]).name)


def test_the_certificate_has_the_names_that_are_called(certificates: Certificates) -> None:
    shown = x509.load_pem_x509_certificate(certificates.certificate.read_bytes())
    places = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    names = set(places.get_values_for_type(x509.DNSName))
    assert {"localhost", "gateway", "nats", "clickhouse", "arena.example.org"} <= names
    called = urlsplit(ADDED["gateway"]["environment"]["HYBRID_CLICKHOUSE_URL"]).hostname
    assert called in names


def test_the_key_is_for_the_containers_and_kept_from_everybody_else(
    certificates: Certificates,
) -> None:
    folder = certificates.key.parent
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.iterdir()]}
    assert modes["tls"] == 0o700
    # Users of the containers are not its owner; the authority's key goes into none.
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


def test_clickhouse_has_one_port_and_it_speaks_tls() -> None:
    (source,) = (source for source in mounted("clickhouse").values() if source.endswith(".xml"))
    config = ElementTree.parse(ROOT / source).getroot()
    ports = {each.tag: each.text for each in config if each.tag.endswith("_port")}
    gone = {each.tag for each in config if each.get("remove")}
    assert {tag: text for tag, text in ports.items() if tag not in gone} == {"https_port": "8123"}
    assert {"http_port", "tcp_port"} <= gone
    files = [
        config.findtext(f"openSSL/server/{each}File") for each in ("certificate", "privateKey")
    ]
    assert set(files) <= mounted("clickhouse").keys()
    assert "https://127.0.0.1:8123/ping" in ADDED["clickhouse"]["healthcheck"]["test"]


def test_prometheus_scrapes_the_same_over_tls() -> None:
    plain, secured = (
        yaml.safe_load((PROMETHEUS / name).read_text())
        for name in ("prometheus.yml", "prometheus.tls.yml")
    )
    for job in plain["scrape_configs"]:
        job["scheme"] = "https"
        job["tls_config"] = {"ca_file": "/tls/ca.pem", "server_name": "gateway"}
    assert secured == plain
    assert mounted("prometheus").keys() == {"/etc/prometheus/prometheus.yml", "/tls/ca.pem"}


def test_the_command_adds_a_name_to_a_certificate_that_is_there(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "deploy.certificates", tmp_path / "tls"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    made = Certificates.of(tmp_path / "tls")
    assert str(made.authority) in said
    authority, first = made.authority.read_bytes(), made.certificate.read_bytes()
    subprocess.run(command, check=True, capture_output=True)
    assert made.certificate.read_bytes() == first
    subprocess.run([*command, "arena.example.org"], check=True, capture_output=True)
    assert made.certificate.read_bytes() != first
    assert made.authority.read_bytes() == authority
