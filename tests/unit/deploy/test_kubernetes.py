"""The manifests of deploy/kubernetes: valid, complete, without rights, in line with compose."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from deploy.kubernetes import scaling
from deploy.kubernetes.__main__ import files
from deploy.kubernetes.stores import IMAGE, NATS_CONF
from deploy.kubernetes.workloads import WORKLOADS
from deploy.nats.permissions import USERS, password_variable
from shared.messages import subjects
from shared.messages.signatures import public_key
from shared.runtime.settings import Settings
from tests.unit.deploy.kustomize import Manifest, render
from tests.unit.deploy.test_compose import OURS, ROOT, SERVICES, check_nats

FOLDER = ROOT / "deploy/kubernetes"
OVERLAYS = ("single", "cluster")
RENDERED: dict[str, list[Manifest]] = {name: render(FOLDER / name) for name in OVERLAYS}
API_VERSION = "1.31"
# Their schemas come from operators; checked further down.
CUSTOM = {"ScaledObject", "ClickHouseInstallation"}
VALUES = yaml.safe_load((FOLDER / "cluster/nats-values.yaml").read_text())


def of_kind(overlay: str, *kinds: str) -> list[Manifest]:
    return [each for each in RENDERED[overlay] if each["kind"] in kinds]


def named(overlay: str, kind: str) -> dict[str, Manifest]:
    return {each["metadata"]["name"]: each for each in of_kind(overlay, kind)}


def pods(overlay: str) -> dict[str, Manifest]:
    """The pod templates, by name."""
    templates = {
        each["metadata"]["name"]: each["spec"]["template"]
        for each in of_kind(overlay, "Deployment", "StatefulSet")
    }
    for each in of_kind(overlay, "ClickHouseInstallation"):
        templates["clickhouse"] = each["spec"]["templates"]["podTemplates"][0]
    return templates


def containers(overlay: str) -> dict[str, Manifest]:
    return {name: pod["spec"]["containers"][0] for name, pod in pods(overlay).items()}


def environment(container: Manifest) -> dict[str, Any]:
    return {entry["name"]: entry for entry in container.get("env", [])}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_manifest_is_valid_and_has_no_unknown_field(overlay: str) -> None:
    for manifest in RENDERED[overlay]:
        if manifest["kind"] not in CUSTOM:
            kubernetes_validate.validate(manifest, API_VERSION, strict=True)


def test_written_files_are_up_to_date() -> None:
    for path, text in files().items():
        assert path.read_text() == text, f"{path.name}: run `python -m deploy.kubernetes`"


def kubectl_release() -> int:
    """The 32 of 1.32; 0: not installed."""
    if not shutil.which("kubectl"):
        return 0
    command = ["kubectl", "version", "--client", "--output", "json"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(re.sub(r"\D", "", json.loads(output)["clientVersion"]["minor"]))


@pytest.mark.skipif(
    kubectl_release() < 24,
    reason="needs kubectl 1.24 or newer, which pip and npm do not have and Debian only in an older "
    "version; our own rendering of the manifests is checked anyway",
)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kustomize_renders_the_same(overlay: str) -> None:
    command = ["kubectl", "kustomize", str(FOLDER / overlay)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # The end of a generated name is a hash of its content.
    text = re.sub(r"(name: arena)-[a-z0-9]{10}$", r"\1", output, flags=re.MULTILINE)

    def key(manifest: Manifest) -> tuple[str, str]:
        return manifest["kind"], manifest["metadata"]["name"]

    assert sorted(yaml.safe_load_all(text), key=key) == sorted(RENDERED[overlay], key=key)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_services_are_those_of_compose(overlay: str) -> None:
    ours = {name: each for name, each in containers(overlay).items() if name in OURS}
    assert sorted(ours) == OURS
    for name, container in ours.items():
        assert container["args"] == [SERVICES[name]["command"]]
        policy = environment(container).get("HYBRID_POLICY", {}).get("value")
        assert policy == SERVICES[name]["environment"].get("HYBRID_POLICY")
        uses_store = "HYBRID_CLICKHOUSE_PASSWORD" in SERVICES[name]["environment"]
        assert ("HYBRID_CLICKHOUSE_PASSWORD" in environment(container)) == uses_store


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_variable_is_a_setting(overlay: str) -> None:
    known = {f"HYBRID_{field.upper()}" for field in Settings.model_fields}
    variables = set(named(overlay, "ConfigMap")["arena"]["data"])
    for name in OURS:
        variables |= environment(containers(overlay)[name]).keys()
    assert variables <= known


def test_images_are_those_of_compose() -> None:
    for name, container in containers("single").items():
        tag = SERVICES[name]["image"].replace("${HYBRID_VERSION:-latest}", "latest")
        assert container["image"] == tag
    assert SERVICES["clickhouse"]["image"] == IMAGE
    assert f"nats:{VALUES['container']['image']['tag']}" == SERVICES["nats"]["image"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_have_no_rights(overlay: str) -> None:
    for name, pod in pods(overlay).items():
        security = pod["spec"]["securityContext"]
        assert security["runAsNonRoot"]
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        container = containers(overlay)[name]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert {"requests", "limits"} <= container["resources"].keys()
        assert set(container["resources"]["limits"]) == {"memory"}
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}


def test_a_service_is_not_restarted_because_nats_or_clickhouse_is_away() -> None:
    for name in OURS:
        container, ready = containers("single")[name], "/alive" if name == "gateway" else "/health"
        paths = {"startupProbe": "/alive", "livenessProbe": "/alive", "readinessProbe": ready}
        assert {probe: container[probe]["httpGet"]["path"] for probe in paths} == paths


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_each_service_loses_at_most_one_pod_at_a_time(overlay: str) -> None:
    budgets = named(overlay, "PodDisruptionBudget")
    assert sorted(budgets) == OURS
    for name, budget in budgets.items():
        assert budget["spec"]["maxUnavailable"] == 1
        labels = pods(overlay)[name]["metadata"]["labels"]
        assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_network_policies_deny_what_is_not_listed(overlay: str) -> None:
    policies = named(overlay, "NetworkPolicy")
    default = policies.pop("nothing")["spec"]
    assert default == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    store = policies["to-the-store"]["spec"]["podSelector"]["matchExpressions"][0]["values"]
    assert set(store) == {each.service for each in WORKLOADS if each.uses_store}
    selected = {
        policies[name]["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/name"]
        for name in ("nats", "clickhouse", "gateway")
    }
    assert selected == {"nats", "clickhouse", "gateway"}


def secrets() -> dict[str, dict[str, str]]:
    command = ["sh", FOLDER / "make-secrets"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    manifests = list(yaml.safe_load_all(output))
    for secret in manifests:
        kubernetes_validate.validate(secret, API_VERSION, strict=True)
    return {each["metadata"]["name"]: each["stringData"] for each in manifests}


def test_make_secrets_writes_every_password_that_a_pod_needs() -> None:
    written = secrets()
    assert set(written["nats-passwords"]) == {password_variable(user) for user in USERS}
    assert public_key(written["model-key"]["key"]) == written["model-key"]["public"]
    others = written.keys() - {"model-key"}
    passwords = [value for name in others for value in written[name].values()]
    assert all(re.fullmatch(r"p[0-9a-f]{48}", value) for value in passwords)
    assert len(set(passwords)) == len(passwords)
    for overlay in OVERLAYS:
        for container in containers(overlay).values():
            for entry in container.get("env", []):
                if reference := entry.get("valueFrom", {}).get("secretKeyRef"):
                    assert reference["key"] in written[reference["name"]]
            for source in container.get("envFrom", []):
                assert source.get("secretRef", {"name": "nats-passwords"})["name"] in written


def test_no_password_is_in_the_repository() -> None:
    for path in FOLDER.rglob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text()):
            assert document is None or document.get("kind") != "Secret"


def test_nats_accepts_its_configuration_with_these_passwords(tmp_path: Path) -> None:
    for name, text in named("single", "ConfigMap")["nats-config"]["data"].items():
        (tmp_path / name).write_text(text)
    check_nats(tmp_path / "nats.conf", secrets()["nats-passwords"], "")


def test_the_nats_chart_has_the_limits_of_the_single_server() -> None:
    (payload,) = re.findall(r"max_payload: (\S+)", NATS_CONF)
    expected = {"max_payload": f"<< {payload} >>", "$include": "./users.conf"}
    assert VALUES["config"]["merge"] == expected
    (sync,) = re.findall(r'sync_interval: "(\S+)"', NATS_CONF)
    assert VALUES["config"]["jetstream"]["merge"] == {"sync_interval": sync}


def test_streams_have_as_many_copies_as_the_cluster_has_servers() -> None:
    servers = VALUES["config"]["cluster"]["replicas"]
    assert named("cluster", "ConfigMap")["arena"]["data"]["HYBRID_NATS_REPLICAS"] == str(servers)
    assert named("single", "ConfigMap")["arena"]["data"]["HYBRID_NATS_REPLICAS"] == "1"


def test_every_scheduler_and_the_recorder_scale_on_the_lag_of_their_own_consumer() -> None:
    scaled = named("cluster", "ScaledObject")
    policies = {f"scheduler-{p.replace('_', '-')}": p for p in (w.policy for w in WORKLOADS) if p}
    assert set(scaled) == {*policies, "recorder"}
    for name, manifest in scaled.items():
        spec = manifest["spec"]
        assert spec["scaleTargetRef"] == {"name": name}
        assert 1 == spec["minReplicaCount"] < spec["maxReplicaCount"] <= 8
        # `kubectl apply` must not undo what KEDA has set.
        assert "replicas" not in named("cluster", "Deployment")[name]["spec"]
        for trigger in spec["triggers"]:
            assert all(isinstance(value, str) for value in trigger["metadata"].values())
            assert int(trigger["metadata"]["lagThreshold"]) > scaling.LEAD
        consumers = {(t["metadata"]["stream"], t["metadata"]["consumer"]) for t in spec["triggers"]}
        if name == "recorder":
            durable = subjects.RECORDER_DURABLE
            assert consumers == {(subjects.RESULTS, durable), (subjects.TASKS, durable)}
        else:
            assert consumers == {(subjects.TASKS, subjects.scheduler_durable(policies[name]))}


def test_the_services_find_the_clickhouse_of_the_cluster() -> None:
    (manifest,) = of_kind("cluster", "ClickHouseInstallation")
    spec = manifest["spec"]
    (service,) = spec["templates"]["serviceTemplates"]
    address = named("cluster", "ConfigMap")["arena"]["data"]["HYBRID_CLICKHOUSE_URL"]
    ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    assert address == f"http://{service['generateName']}:{ports['http']}"


def test_the_readme_names_folders_and_files_that_exist() -> None:
    text = (FOLDER / "README.md").read_text()
    assert set(OVERLAYS) <= set(re.findall(r"-k deploy/kubernetes/(\w+)", text))
    for path in re.findall(r"deploy/[\w./-]+\w", text):
        assert (ROOT / path).exists(), path
