"""docker-compose.yml and its configuration files, checked without a Docker engine."""

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

from deploy.kubernetes.workloads import WORKLOADS
from deploy.local.arena import CLICKHOUSE_USER
from deploy.nats.__main__ import files
from deploy.nats.permissions import USERS, password_variable
from shared.domain.schedulers import BUILT_IN
from shared.messages.signatures import public_key
from shared.runtime.settings import Settings

ROOT = Path(__file__).parents[3]
COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
NATS_CONF = ROOT / "deploy/nats/nats.conf"
CLUSTER = ROOT / "deploy/compose.cluster.yml"
CLICKHOUSE_USERS = ElementTree.parse(ROOT / "deploy/clickhouse/users.xml").getroot()

SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text())["services"]
# Third-party images; all other services run ours.
STORES = {"nats", "clickhouse"}
OBSERVABILITY = {"prometheus", "grafana"}
OURS = sorted(SERVICES.keys() - STORES - OBSERVABILITY)


def sources(service: str) -> list[str]:
    """Names of the mounted volumes, and paths of mounted files, which begin with a dot."""
    return [str(volume).split(":")[0] for volume in SERVICES[service].get("volumes", [])]


def test_every_built_in_policy_has_a_scheduler() -> None:
    schedulers = {
        name: service["environment"]["HYBRID_POLICY"]
        for name, service in SERVICES.items()
        if service.get("command") == "services.scheduler"
    }
    assert schedulers == {f"scheduler-{name.replace('_', '-')}": name for name in BUILT_IN}


def test_every_service_of_the_repository_is_deployed() -> None:
    packages = {file.parent.name for file in (ROOT / "services").glob("*/__main__.py")}
    assert {SERVICES[name]["command"] for name in OURS} == {f"services.{p}" for p in packages}


def test_images_have_a_fixed_version() -> None:
    foreign = STORES | OBSERVABILITY
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
def test_a_service_has_a_memory_limit_ours_as_on_kubernetes(name: str) -> None:
    limit = SERVICES[name]["mem_limit"]
    if name not in OURS:
        assert limit
        return
    (workload,) = (workload for workload in WORKLOADS if workload.name == name)
    assert limit == workload.memory_limit.lower().removesuffix("i")


def test_the_plug_in_of_the_readme_is_as_confined_as_the_others() -> None:
    readme = (ROOT / "deploy/README.md").read_text()
    snippet = yaml.safe_load(readme.partition("```yaml\n")[2].partition("```")[0])
    mine, greedy = snippet["services"]["scheduler-mine"], SERVICES["scheduler-greedy"]
    variables, others = mine.pop("environment"), dict(greedy["environment"])
    for key in ("restart", "user", "init", "read_only", "tmpfs", "cap_drop", "security_opt"):
        assert mine[key] == greedy[key]
    for key in ("image", "command", "mem_limit", "stop_grace_period"):
        assert mine[key] == greedy[key]
    for key in ("HYBRID_NATS_URL", "HYBRID_NATS_USER", "HYBRID_MODEL_PUBLIC_KEY"):
        assert variables[key] == others[key]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_can_be_scaled_unless_it_has_state_or_a_port(name: str) -> None:
    service = SERVICES[name]
    assert "container_name" not in service
    assert ("ports" in service) == (name in {"gateway", "clickhouse"} | OBSERVABILITY)
    stateful = name in STORES | OBSERVABILITY
    assert any(not source.startswith(".") for source in sources(name)) == stateful


def test_ports_are_open_to_this_machine_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert all(port.startswith(("127.0.0.1:", "${HYBRID_PUBLISH:-127.0.0.1:")) for port in ports)


def test_data_is_in_named_volumes_and_mounted_files_exist() -> None:
    named = set(yaml.safe_load(COMPOSE.read_text())["volumes"])
    mounted = [source for name in SERVICES for source in sources(name)]
    assert {source for source in mounted if not source.startswith(".")} == named
    assert all((ROOT / source).is_file() for source in mounted if source.startswith("."))


def test_passwords_come_from_the_environment_and_a_missing_one_names_the_command() -> None:
    hint = r"\$\{HYBRID_\w+_PASSWORD:\?run deploy/make-env once, [^}]+\}"
    passwords = [
        str(value)
        for service in SERVICES.values()
        for key, value in service.get("environment", {}).items()
        if key.endswith("_PASSWORD")
    ]
    assert passwords
    assert all(re.fullmatch(f'"?{hint}"?', value) for value in passwords)


def test_only_services_that_need_a_secret_have_it() -> None:
    def holders(variable: str) -> list[str]:
        return [name for name in OURS if variable in SERVICES[name]["environment"]]

    assert holders("HYBRID_CLICKHOUSE_PASSWORD") == ["gateway", "recorder", "simulator", "trainer"]
    assert holders("HYBRID_MODEL_KEY") == ["trainer"]
    assert holders("HYBRID_MODEL_PUBLIC_KEY") == OURS


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting(name: str) -> None:
    fields = {f"HYBRID_{field.upper()}" for field in Settings.model_fields}
    assert SERVICES[name]["environment"].keys() <= fields


def documented() -> set[str]:
    """Every setting in the two documents; a table of the README leaves out HYBRID_GATEWAY_."""
    readme = (ROOT / "deploy/README.md").read_text()
    text = (ROOT / "docs/operations.md").read_text() + readme
    table = readme.partition("| `HYBRID_GATEWAY_...`")[2].partition("\n\n")[0]
    rows = {f"HYBRID_GATEWAY_{name}" for name in re.findall(r"^\| `(\w+)`", table, re.MULTILINE)}
    fields = {f"HYBRID_{field.upper()}" for field in Settings.model_fields}
    assert rows <= fields
    return rows | (fields & set(re.findall(r"HYBRID_\w+", text)))


# Not set in .env: a service's identity, and TLS, which has a compose file of its own.
FIXED = {"HYBRID_POLICY", "HYBRID_NATS_USER", "HYBRID_NATS_PASSWORD", "HYBRID_CLICKHOUSE_URL"}
CONFIGURABLE = sorted(name for name in documented() - FIXED if "_TLS_" not in name)


@pytest.mark.parametrize("setting", CONFIGURABLE)
def test_a_documented_setting_in_env_reaches_the_services_that_use_it(setting: str) -> None:
    users = OURS
    if setting.startswith("HYBRID_GATEWAY_"):
        users = ["gateway"]
    elif setting == "HYBRID_COMMANDS" or setting.startswith("HYBRID_EXECUTOR_"):
        users = ["executor"]
    elif setting == "HYBRID_STUCK_AFTER":
        users = ["generator"]
    elif setting == "HYBRID_NATS_SYNC_INTERVAL":
        users = ["nats"]
    for name in users:
        values = " ".join(map(str, SERVICES[name]["environment"].values()))
        assert f"${{{setting}:" in values, f"{name} does not get {setting}"


def test_clickhouse_users_are_the_same_in_every_file() -> None:
    assert SERVICES["clickhouse"]["environment"]["CLICKHOUSE_USER"] == CLICKHOUSE_USER
    assert SERVICES["recorder"]["environment"]["HYBRID_CLICKHOUSE_USER"] == CLICKHOUSE_USER
    users = {user.tag for user in CLICKHOUSE_USERS.findall("users/*")}
    assert users == {"default", CLICKHOUSE_USER, "analyst"}
    assert CLICKHOUSE_USERS.find("users/default[@remove]") is not None
    variables = {user.get("from_env") for user in CLICKHOUSE_USERS.findall("users/*/password")}
    assert variables == {"CLICKHOUSE_PASSWORD", "CLICKHOUSE_ANALYST_PASSWORD"}
    assert variables <= SERVICES["clickhouse"]["environment"].keys()


def test_the_analyst_only_reads_and_the_writer_is_limited_to_its_database() -> None:
    database = Settings.model_fields["clickhouse_database"].default
    find = CLICKHOUSE_USERS.findtext
    assert find("profiles/analyst/readonly") == "1"
    assert find("users/analyst/profile") == "analyst"
    assert find("users/analyst/grants/query") == f"GRANT SELECT, SHOW ON {database}.*"
    assert find(f"users/{CLICKHOUSE_USER}/grants/query") == f"GRANT ALL ON {database}.*"


def test_every_service_has_its_own_nats_user() -> None:
    for name in OURS:
        variables = SERVICES[name]["environment"]
        user = SERVICES[name]["command"].removeprefix("services.")
        assert variables["HYBRID_NATS_USER"] == user
        assert f"{{HYBRID_NATS_{user.upper()}_PASSWORD:" in variables["HYBRID_NATS_PASSWORD"]
    variables = SERVICES["nats"]["environment"]
    for user in USERS:
        assert f"{{HYBRID_NATS_{user.upper()}_PASSWORD:" in variables[password_variable(user)]


@pytest.mark.parametrize("name", files())
def test_the_configuration_of_nats_is_up_to_date(name: str) -> None:
    written = (ROOT / "deploy/nats" / name).read_text()
    assert written == files()[name], "renew it with: python -m deploy.nats"


def check_nats(conf: Path, variables: dict[str, str], password: str) -> None:
    """With the variables of compose, their defaults, and this password for every user."""
    environment = {
        name: re.sub(r"\$\{[^}]+\}", password, re.sub(r"\$\{\w+:-(\w+)\}", r"\1", value))
        for name, value in variables.items()
    }
    server = Path(sys.executable).parent / "nats-server"
    check = subprocess.run(
        [server, "-t", "-c", conf], env=environment, capture_output=True, text=True
    )
    assert check.returncode == 0, check.stderr


@pytest.mark.parametrize("password", ["letters", "0099", "99k"])
def test_nats_accepts_its_configuration_with_any_password(password: str) -> None:
    check_nats(NATS_CONF, SERVICES["nats"]["environment"], password)


def test_the_cluster_is_three_nats_servers() -> None:
    override: dict[str, dict[str, Any]] = yaml.safe_load(CLUSTER.read_text())["services"]
    assert override.keys() == {"nats", "nats-2", "nats-3"}
    for number, name in enumerate(override, 1):
        variables = SERVICES["nats"]["environment"] | override[name]["environment"]
        assert variables["NATS_SERVER_NAME"] == name
        assert f"@{name}:6222" in variables[f"NATS_ROUTE_{number}"]
        check_nats(ROOT / "deploy/nats/cluster.conf", variables, "0099")
    volumes = [volume for server in override.values() for volume in server["volumes"]]
    stores = [volume for volume in volumes if not volume.startswith(".")]
    assert len(set(stores)) == len(stores)


def make_env(folder: Path, text: str | None = None) -> str:
    """The .env that the command writes; with `text` there is one already."""
    script, env = folder / "deploy/make-env", folder / ".env"
    script.parent.mkdir(exist_ok=True)
    for name in ("make-env", "make-model-key"):
        shutil.copy(ROOT / "deploy" / name, script.parent)
    if text is not None:
        env.write_text(text)
    subprocess.run(["sh", script], check=True, capture_output=True)
    written = env.read_text()
    subprocess.run(["sh", script], check=True, capture_output=True)
    assert env.read_text() == written, "the second call changed the file"
    return written


def test_make_env_lets_containers_read_what_a_clone_under_umask_077_hides(tmp_path: Path) -> None:
    conf = tmp_path / "deploy/nats/nats.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text("port: 4222")
    conf.chmod(0o600)
    make_env(tmp_path)
    assert stat.S_IMODE(conf.stat().st_mode) == 0o644
    mounted = {source.removeprefix("./") for name in SERVICES for source in sources(name)}
    folders = {Path(source).parts[1] for source in mounted if source.startswith("deploy/")}
    assert folders == {"nats", "clickhouse", "prometheus", "grafana"}


LOCAL = ("", "127.0.0.1:9000", "localhost:9000", "[::1]:9000")


@pytest.mark.parametrize("address", [*LOCAL, "0.0.0.0:8000", "8000", "192.168.1.5:80"])
def test_a_gateway_for_the_network_gets_a_token(tmp_path: Path, address: str) -> None:
    written = make_env(tmp_path, f"HYBRID_PUBLISH={address}\n")
    token = re.search(r"^HYBRID_GATEWAY_TOKEN=[0-9a-f]{48}$", written, re.MULTILINE)
    assert (token is None) == (address in LOCAL)


def test_make_env_writes_random_passwords_once_for_the_owner_only(tmp_path: Path) -> None:
    entries = dict(line.split("=", 1) for line in make_env(tmp_path).splitlines())
    key = entries.pop("HYBRID_MODEL_KEY")
    assert entries.pop("HYBRID_MODEL_PUBLIC_KEY") == public_key(key)
    text = COMPOSE.read_text() + CLUSTER.read_text()
    required = set(re.findall(r"\$\{(HYBRID_\w+_PASSWORD):\?", text))
    assert entries.keys() == required
    assert all(re.fullmatch(r"[0-9a-f]{48}", password) for password in entries.values())
    assert len(set(entries.values())) == len(entries)
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600
    # A file of an older version, partly written by hand.
    mine = "HYBRID_NATS_PASSWORD=old\nHYBRID_CLICKHOUSE_PASSWORD=mine\nHYBRID_ANALYST_PASSWORD=\n"
    upgraded = make_env(tmp_path, mine)
    assert upgraded.startswith(mine)
    read = dict(line.split("=", 1) for line in upgraded.splitlines())
    models = {"HYBRID_MODEL_KEY", "HYBRID_MODEL_PUBLIC_KEY"}
    assert read.keys() == required | models | {"HYBRID_NATS_PASSWORD"}
    assert read["HYBRID_CLICKHOUSE_PASSWORD"] == "mine"
    assert re.fullmatch(r"[0-9a-f]{48}", read["HYBRID_ANALYST_PASSWORD"])
