"""What docker-compose.yml and its configuration files promise, checked without a Docker engine."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from deploy.local.arena import CLICKHOUSE_USER
from deploy.nats.__main__ import files
from deploy.nats.permissions import USERS, password_variable
from shared.settings import Settings
from shared.signing import public_key

ROOT = Path(__file__).parents[3]
COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
NATS_CONF = ROOT / "deploy/nats/nats.conf"
CLUSTER = ROOT / "deploy/compose.cluster.yml"
CLICKHOUSE_USERS = ElementTree.parse(ROOT / "deploy/clickhouse/users.xml").getroot()

SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text())["services"]
# Other people's images; all other services run ours.
STORES = {"nats", "clickhouse"}
WATCHERS = {"prometheus", "grafana"}
OURS = sorted(SERVICES.keys() - STORES - WATCHERS)
POLICIES = sorted(
    file.stem
    for file in (ROOT / "services/scheduler/policies").glob("*.py")
    if not file.stem.startswith("_")
)


def sources(service: str) -> list[str]:
    """What a service mounts: names of volumes, and paths of ours, which begin with a dot."""
    return [str(volume).split(":")[0] for volume in SERVICES[service].get("volumes", [])]


def test_every_built_in_policy_has_a_scheduler_of_its_own() -> None:
    schedulers = {
        name: service["environment"]["HYBRID_POLICY"]
        for name, service in SERVICES.items()
        if service.get("command") == "services.scheduler"
    }
    assert schedulers == {f"scheduler-{name.replace('_', '-')}": name for name in POLICIES}


def test_every_service_that_can_be_started_is_there() -> None:
    packages = {file.parent.name for file in (ROOT / "services").glob("*/__main__.py")}
    assert {SERVICES[name]["command"] for name in OURS} == {f"services.{p}" for p in packages}


def test_all_our_services_share_one_image_that_one_of_them_builds() -> None:
    assert len({SERVICES[name]["image"] for name in OURS}) == 1
    assert [name for name in SERVICES if "build" in SERVICES[name]] == ["recorder"]
    # docker-compose 1.29 makes images in the order of the dependencies.
    assert all("recorder" in SERVICES[name]["depends_on"] for name in OURS if name != "recorder")


def test_images_have_a_fixed_version() -> None:
    foreign = STORES | WATCHERS
    assert all(re.search(r":v?\d+\.\d+", SERVICES[name]["image"]) for name in foreign)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_checked_restarted_and_not_root(name: str) -> None:
    service = SERVICES[name]
    assert "healthcheck" in service or (name in OURS and "\nHEALTHCHECK " in DOCKERFILE)
    assert service["restart"] == "unless-stopped"
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"])
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_can_be_scaled_unless_it_has_state_or_a_port(name: str) -> None:
    service = SERVICES[name]
    assert "container_name" not in service
    assert ("ports" in service) == (name in {"gateway", "clickhouse"} | WATCHERS)
    stateful = name in STORES | WATCHERS
    assert any(not source.startswith(".") for source in sources(name)) == stateful


def test_ports_are_open_to_this_machine_only() -> None:
    assert SERVICES["gateway"]["ports"] == ["${HYBRID_PUBLISH:-127.0.0.1:8000}:8000"]
    for name in WATCHERS | {"clickhouse"}:
        assert all(port.startswith("127.0.0.1:") for port in SERVICES[name]["ports"])


def test_data_is_in_named_volumes_and_mounted_files_exist() -> None:
    named = set(yaml.safe_load(COMPOSE.read_text())["volumes"])
    mounted = [source for name in SERVICES for source in sources(name)]
    assert {source for source in mounted if not source.startswith(".")} == named
    assert all((ROOT / source).is_file() for source in mounted if source.startswith("."))


def test_passwords_come_from_the_environment_and_a_missing_one_names_the_command() -> None:
    hint = r"\$\{HYBRID_\w+_PASSWORD:\?run deploy/make-env once, [^}]+\}"
    given = [
        str(value)
        for service in SERVICES.values()
        for key, value in service.get("environment", {}).items()
        if key.endswith("_PASSWORD")
    ]
    assert given
    assert all(re.fullmatch(f'"?{hint}"?', value) for value in given)


def test_only_those_who_use_clickhouse_have_its_password() -> None:
    holders = {n for n in OURS if "HYBRID_CLICKHOUSE_PASSWORD" in SERVICES[n]["environment"]}
    assert holders == {"gateway", "recorder", "trainer"}


def test_only_the_trainer_can_sign_models_and_all_can_check_them() -> None:
    assert [n for n in OURS if "HYBRID_MODEL_KEY" in SERVICES[n]["environment"]] == ["trainer"]
    assert all("HYBRID_MODEL_PUBLIC_KEY" in SERVICES[n]["environment"] for n in OURS)


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting(name: str) -> None:
    fields = {f"HYBRID_{field.upper()}" for field in Settings.model_fields}
    assert SERVICES[name]["environment"].keys() <= fields


def documented() -> set[str]:
    """Every setting that the two documents name; one of them has a table without the beginnings."""
    readme = (ROOT / "deploy/README.md").read_text()
    text = (ROOT / "docs/operations.md").read_text() + readme
    table = readme.partition("| `HYBRID_GATEWAY_...`")[2].partition("\n\n")[0]
    rows = {f"HYBRID_GATEWAY_{name}" for name in re.findall(r"^\| `(\w+)`", table, re.MULTILINE)}
    fields = {f"HYBRID_{field.upper()}" for field in Settings.model_fields}
    assert rows <= fields
    return rows | (fields & set(re.findall(r"HYBRID_\w+", text)))


# Not chosen in .env: who a service is. Nor is TLS, which is a file of its own.
FIXED = {"HYBRID_POLICY", "HYBRID_NATS_USER", "HYBRID_NATS_PASSWORD", "HYBRID_CLICKHOUSE_URL"}
CHOSEN = sorted(name for name in documented() - FIXED if "_TLS_" not in name)


@pytest.mark.parametrize("setting", CHOSEN)
def test_a_documented_setting_in_env_reaches_those_who_use_it(setting: str) -> None:
    users = OURS
    if setting.startswith("HYBRID_GATEWAY_"):
        users = ["gateway"]
    elif setting == "HYBRID_NATS_SYNC_INTERVAL":
        users = ["nats"]
    for name in users:
        given = " ".join(map(str, SERVICES[name]["environment"].values()))
        assert f"${{{setting}:" in given, f"{name} is not given {setting}"


def test_users_are_the_same_in_every_place() -> None:
    assert SERVICES["clickhouse"]["environment"]["CLICKHOUSE_USER"] == CLICKHOUSE_USER
    assert SERVICES["recorder"]["environment"]["HYBRID_CLICKHOUSE_USER"] == CLICKHOUSE_USER
    users = CLICKHOUSE_USERS.find("users")
    assert users is not None
    assert {user.tag for user in users} == {"default", CLICKHOUSE_USER, "analyst"}
    assert users.find("default[@remove]") is not None


def test_the_analyst_only_reads_and_the_writer_keeps_to_its_database() -> None:
    database = Settings.model_fields["clickhouse_database"].default
    find = CLICKHOUSE_USERS.findtext
    assert find("profiles/analyst/readonly") == "1"
    assert find("users/analyst/profile") == "analyst"
    assert find("users/analyst/grants/query") == f"GRANT SELECT, SHOW ON {database}.*"
    assert find(f"users/{CLICKHOUSE_USER}/grants/query") == f"GRANT ALL ON {database}.*"


def test_clickhouse_stores_an_insert_before_it_answers() -> None:
    assert CLICKHOUSE_USERS.findtext("profiles/writer/async_insert") == "0"
    assert CLICKHOUSE_USERS.findtext(f"users/{CLICKHOUSE_USER}/profile") == "writer"


def test_clickhouse_reads_its_passwords_from_variables_that_compose_gives() -> None:
    variables = {user.get("from_env") for user in CLICKHOUSE_USERS.findall("users/*/password")}
    assert variables == {"CLICKHOUSE_PASSWORD", "CLICKHOUSE_ANALYST_PASSWORD"}
    assert variables <= SERVICES["clickhouse"]["environment"].keys()


def test_every_service_is_a_nats_user_of_its_own_name() -> None:
    for name in OURS:
        given = SERVICES[name]["environment"]
        user = SERVICES[name]["command"].removeprefix("services.")
        assert given["HYBRID_NATS_USER"] == user
        assert f"{{HYBRID_NATS_{user.upper()}_PASSWORD:" in given["HYBRID_NATS_PASSWORD"]
    given = SERVICES["nats"]["environment"]
    for user in USERS:
        assert f"{{HYBRID_NATS_{user.upper()}_PASSWORD:" in given[password_variable(user)]


@pytest.mark.parametrize("name", files())
def test_the_configuration_of_nats_is_up_to_date(name: str) -> None:
    written = (ROOT / "deploy/nats" / name).read_text()
    assert written == files()[name], "renew it with: python -m deploy.nats"


def check_nats(conf: Path, given: dict[str, str], password: str) -> None:
    """With the variables that compose gives, each password this one."""
    told = {name: re.sub(r"\$\{\w+:-(\w+)\}", r"\1", said) for name, said in given.items()}
    environment = {name: re.sub(r"\$\{[^}]+\}", password, said) for name, said in told.items()}
    server = Path(sys.executable).parent / "nats-server"
    check = subprocess.run(
        [server, "-t", "-c", conf], env=environment, capture_output=True, text=True
    )
    assert check.returncode == 0, check.stderr


@pytest.mark.parametrize("password", ["letters", "0099", "99k"])
def test_nats_accepts_its_configuration_whatever_the_password_looks_like(password: str) -> None:
    check_nats(NATS_CONF, SERVICES["nats"]["environment"], password)


def test_the_cluster_is_three_nats_servers_alike() -> None:
    override: dict[str, dict[str, Any]] = yaml.safe_load(CLUSTER.read_text())["services"]
    assert override.keys() == {"nats", "nats-2", "nats-3"}
    for number, name in enumerate(override, 1):
        given = SERVICES["nats"]["environment"] | override[name]["environment"]
        assert given["NATS_SERVER_NAME"] == name
        assert f"@{name}:6222" in given[f"NATS_ROUTE_{number}"]
        check_nats(ROOT / "deploy/nats/cluster.conf", given, "0099")
    volumes = [volume for said in override.values() for volume in said["volumes"]]
    stores = [volume for volume in volumes if not volume.startswith(".")]
    assert len(set(stores)) == len(stores)


def test_the_image_is_not_root_and_holds_nothing_but_the_program() -> None:
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", DOCKERFILE, re.MULTILINE)
    rules = (ROOT / ".dockerignore").read_text().split("\n")
    kept = {rule[1:] for rule in rules if rule.startswith("!")}
    assert "*" in rules
    program = {"deploy", "services", "shared", "dashboard"}
    assert kept == program | {"pyproject.toml", "constraints.txt", "README.md"}


def copied_make_env(folder: Path) -> Path:
    script = folder / "deploy/make-env"
    script.parent.mkdir()
    for name in ("make-env", "make-model-key"):
        shutil.copy(ROOT / "deploy" / name, script.parent)
    return script


@pytest.mark.parametrize(
    ("published", "asks"),
    [
        ("", False),
        ("127.0.0.1:9000", False),
        ("localhost:9000", False),
        ("[::1]:9000", False),
        ("0.0.0.0:8000", True),
        ("8000", True),
        ("192.168.1.5:80", True),
    ],
)
def test_a_gateway_for_the_network_gets_a_token(tmp_path: Path, published: str, asks: bool) -> None:
    script = copied_make_env(tmp_path)
    (tmp_path / ".env").write_text(f"HYBRID_PUBLISH={published}\n")
    subprocess.run(["sh", script], check=True, capture_output=True)
    written = (tmp_path / ".env").read_text()
    assert bool(re.search(r"^HYBRID_GATEWAY_TOKEN=[0-9a-f]{48}$", written, re.MULTILINE)) == asks
    subprocess.run(["sh", script], check=True, capture_output=True)
    assert (tmp_path / ".env").read_text() == written


def test_make_env_writes_random_passwords_once_for_the_owner_alone(tmp_path: Path) -> None:
    script = copied_make_env(tmp_path)
    subprocess.run(["sh", script], check=True, capture_output=True)
    written = (tmp_path / ".env").read_text()
    entries = dict(line.split("=", 1) for line in written.splitlines())
    key = entries.pop("HYBRID_MODEL_KEY")
    assert entries.pop("HYBRID_MODEL_PUBLIC_KEY") == public_key(key)
    wanted = set(
        re.findall(r"\$\{(HYBRID_\w+_PASSWORD):\?", COMPOSE.read_text() + CLUSTER.read_text())
    )
    assert entries.keys() == wanted
    assert all(re.fullmatch(r"[0-9a-f]{48}", password) for password in entries.values())
    assert len(set(entries.values())) == len(entries)
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600
    subprocess.run(["sh", script], check=True, capture_output=True)
    assert (tmp_path / ".env").read_text() == written
    # An older version's file, and one that a person has begun.
    mine = "HYBRID_NATS_PASSWORD=old\nHYBRID_CLICKHOUSE_PASSWORD=mine\nHYBRID_ANALYST_PASSWORD=\n"
    (tmp_path / ".env").write_text(mine)
    subprocess.run(["sh", script], check=True, capture_output=True)
    upgraded = (tmp_path / ".env").read_text()
    assert upgraded.startswith(mine)
    read = dict(line.split("=", 1) for line in upgraded.splitlines())
    models = {"HYBRID_MODEL_KEY", "HYBRID_MODEL_PUBLIC_KEY"}
    assert read.keys() == wanted | models | {"HYBRID_NATS_PASSWORD"}
    assert read["HYBRID_CLICKHOUSE_PASSWORD"] == "mine"
    assert re.fullmatch(r"[0-9a-f]{48}", read["HYBRID_ANALYST_PASSWORD"])
