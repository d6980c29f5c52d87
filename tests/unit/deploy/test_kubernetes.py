"""The manifests of deploy/kubernetes: valid for the API, alike to compose, safe, and complete."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
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
from shared import subjects
from shared.settings import Settings
from shared.signing import public_key
from tests.unit.deploy.kustomize import Manifest, render
from tests.unit.deploy.test_compose import OURS, ROOT, SERVICES

FOLDER = ROOT / "deploy/kubernetes"
OVERLAYS = ("single", "cluster")
RENDERED: dict[str, list[Manifest]] = {name: render(FOLDER / name) for name in OVERLAYS}
API_VERSION = "1.31"
# Those whose schemas the API server gets from operators; checked further down.
CUSTOM = {"ScaledObject", "ClickHouseInstallation"}
VALUES = yaml.safe_load((FOLDER / "cluster/nats-values.yaml").read_text())


def of_kind(overlay: str, *kinds: str) -> list[Manifest]:
    return [each for each in RENDERED[overlay] if each["kind"] in kinds]


def named(overlay: str, kind: str) -> dict[str, Manifest]:
    return {each["metadata"]["name"]: each for each in of_kind(overlay, kind)}


def pods(overlay: str) -> dict[str, Manifest]:
    """Of everything that runs pods, by its name."""
    found = {
        each["metadata"]["name"]: each["spec"]["template"]
        for each in of_kind(overlay, "Deployment", "StatefulSet")
    }
    for each in of_kind(overlay, "ClickHouseInstallation"):
        found["clickhouse"] = each["spec"]["templates"]["podTemplates"][0]
    return found


def containers(overlay: str) -> dict[str, Manifest]:
    return {name: pod["spec"]["containers"][0] for name, pod in pods(overlay).items()}


def environment(container: Manifest) -> dict[str, Any]:
    return {entry["name"]: entry for entry in container.get("env", [])}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_manifest_is_valid_and_has_no_unknown_field(overlay: str) -> None:
    for manifest in RENDERED[overlay]:
        if manifest["kind"] not in CUSTOM:
            kubernetes_validate.validate(manifest, API_VERSION, strict=True)


def test_an_unknown_field_would_be_noticed() -> None:
    (manifest, *_) = of_kind("single", "Deployment")
    spoiled = {**manifest, "spec": {**manifest["spec"], "replica": 3}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(spoiled, API_VERSION, strict=True)


def test_written_files_are_up_to_date() -> None:
    for path, text in files().items():
        assert path.read_text() == text, f"{path.name}: run `python -m deploy.kubernetes`"


def kubectl_release() -> int:
    """The 32 of 1.32; 0: there is none."""
    if not shutil.which("kubectl"):
        return 0
    asked = ["kubectl", "version", "--client", "--output", "json"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return int(re.sub(r"\D", "", json.loads(said)["clientVersion"]["minor"]))


@pytest.mark.skipif(
    kubectl_release() < 24,
    reason="needs kubectl 1.24 or newer, which pip and npm do not have and Debian only in an older "
    "version; our own rendering of the manifests is checked all the same",
)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kustomize_renders_the_same(overlay: str) -> None:
    done = subprocess.run(
        ["kubectl", "kustomize", str(FOLDER / overlay)], capture_output=True, text=True, check=True
    )
    # The end of a generated name is a hash of its content.
    text = re.sub(r"(name: arena)-[a-z0-9]{10}$", r"\1", done.stdout, flags=re.MULTILINE)

    def key(manifest: Manifest) -> tuple[str, str]:
        return manifest["kind"], manifest["metadata"]["name"]

    assert sorted(yaml.safe_load_all(text), key=key) == sorted(RENDERED[overlay], key=key)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_services_are_those_of_compose(overlay: str) -> None:
    ours = {name: found for name, found in containers(overlay).items() if name in OURS}
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
    given = set(named(overlay, "ConfigMap")["arena"]["data"])
    for name in OURS:
        given |= environment(containers(overlay)[name]).keys()
    assert given <= known


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


def test_a_service_is_not_restarted_because_another_part_is_away() -> None:
    for name in OURS:
        container = containers("single")[name]
        asked = {
            probe: container[probe]["httpGet"]["path"]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe")
        }
        ready = "/alive" if name == "gateway" else "/health"
        assert asked == {
            "startupProbe": "/alive",
            "livenessProbe": "/alive",
            "readinessProbe": ready,
        }


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_each_service_may_be_moved_one_pod_at_a_time(overlay: str) -> None:
    budgets = named(overlay, "PodDisruptionBudget")
    assert sorted(budgets) == OURS
    for name, budget in budgets.items():
        assert budget["spec"]["maxUnavailable"] == 1
        labels = pods(overlay)[name]["metadata"]["labels"]
        assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_the_trainer_is_alone() -> None:
    for overlay in OVERLAYS:
        trainer = named(overlay, "Deployment")["trainer"]["spec"]
        assert trainer["strategy"] == {"type": "Recreate"}
        assert "replicas" not in trainer


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_nothing_is_reachable_that_is_not_listed(overlay: str) -> None:
    policies = named(overlay, "NetworkPolicy")
    everything = policies.pop("nothing")["spec"]
    assert everything == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    store = policies["to-the-store"]["spec"]["podSelector"]["matchExpressions"][0]["values"]
    assert set(store) == {each.service for each in WORKLOADS if each.uses_store}
    selected = {
        policies[name]["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/name"]
        for name in ("nats", "clickhouse", "gateway")
    }
    assert selected == {"nats", "clickhouse", "gateway"}


def secrets() -> dict[str, dict[str, str]]:
    done = subprocess.run(
        ["sh", FOLDER / "make-secrets"], capture_output=True, text=True, check=True
    )
    found = list(yaml.safe_load_all(done.stdout))
    for secret in found:
        kubernetes_validate.validate(secret, API_VERSION, strict=True)
    return {each["metadata"]["name"]: each["stringData"] for each in found}


def test_secrets_have_every_password_that_is_asked_for() -> None:
    made = secrets()
    assert set(made["nats-passwords"]) == {password_variable(user) for user in USERS}
    assert public_key(made["model-key"]["key"]) == made["model-key"]["public"]
    passwords = [value for name in made.keys() - {"model-key"} for value in made[name].values()]
    assert all(re.fullmatch(r"p[0-9a-f]{48}", value) for value in passwords)
    assert len(set(passwords)) == len(passwords)
    for overlay in OVERLAYS:
        for container in containers(overlay).values():
            for entry in container.get("env", []):
                if reference := entry.get("valueFrom", {}).get("secretKeyRef"):
                    assert reference["key"] in made[reference["name"]]
            for source in container.get("envFrom", []):
                assert source.get("secretRef", {"name": "nats-passwords"})["name"] in made


def test_no_password_is_in_the_repository() -> None:
    for path in FOLDER.rglob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text()):
            assert document is None or document.get("kind") != "Secret"


def test_nats_accepts_its_configuration_with_these_passwords(tmp_path: Path) -> None:
    for name, text in named("single", "ConfigMap")["nats-config"]["data"].items():
        (tmp_path / name).write_text(text)
    check = subprocess.run(
        [Path(sys.executable).parent / "nats-server", "-t", "-c", tmp_path / "nats.conf"],
        env=secrets()["nats-passwords"],
        capture_output=True,
        text=True,
    )
    assert check.returncode == 0, check.stderr


def test_the_chart_gives_nats_the_limits_of_the_single_one() -> None:
    (payload,) = re.findall(r"max_payload: (\S+)", NATS_CONF)
    assert VALUES["config"]["merge"] == {
        "max_payload": f"<< {payload} >>",
        "$include": "./users.conf",
    }
    (sync,) = re.findall(r'sync_interval: "(\S+)"', NATS_CONF)
    assert VALUES["config"]["jetstream"]["merge"] == {"sync_interval": sync}


def test_streams_have_as_many_copies_as_the_cluster_has_servers() -> None:
    servers = VALUES["config"]["cluster"]["replicas"]
    assert named("cluster", "ConfigMap")["arena"]["data"]["HYBRID_NATS_REPLICAS"] == str(servers)
    assert named("single", "ConfigMap")["arena"]["data"]["HYBRID_NATS_REPLICAS"] == "1"


def test_every_scheduler_and_the_recorder_scale_on_the_lag_of_their_own_consumer() -> None:
    """The fields are those of KEDA's ScaledObject and of its scaler `nats-jetstream`."""
    scaled = named("cluster", "ScaledObject")
    policies = {f"scheduler-{p.replace('_', '-')}": p for p in (w.policy for w in WORKLOADS) if p}
    assert set(scaled) == {*policies, "recorder"}
    for name, manifest in scaled.items():
        assert manifest["apiVersion"] == "keda.sh/v1alpha1"
        spec = manifest["spec"]
        assert set(spec) == {
            "scaleTargetRef",
            "minReplicaCount",
            "maxReplicaCount",
            "pollingInterval",
            "cooldownPeriod",
            "advanced",
            "triggers",
        }
        assert spec["scaleTargetRef"] == {"name": name}
        assert 1 == spec["minReplicaCount"] < spec["maxReplicaCount"] <= 8
        # An `apply` must not undo what KEDA has set.
        assert "replicas" not in named("cluster", "Deployment")[name]["spec"]
        for trigger in spec["triggers"]:
            assert set(trigger) == {"type", "metadata"}
            assert trigger["type"] == "nats-jetstream"
            assert all(isinstance(value, str) for value in trigger["metadata"].values())
            assert set(trigger["metadata"]) == {
                "natsServerMonitoringEndpoint",
                "account",
                "stream",
                "consumer",
                "lagThreshold",
            }
            assert int(trigger["metadata"]["lagThreshold"]) > scaling.LEAD
        read = {(t["metadata"]["stream"], t["metadata"]["consumer"]) for t in spec["triggers"]}
        if name == "recorder":
            durable = subjects.RECORDER_DURABLE
            assert read == {(subjects.RESULTS, durable), (subjects.TASKS, durable)}
        else:
            assert read == {(subjects.TASKS, subjects.scheduler_durable(policies[name]))}


def test_the_clickhouse_of_the_cluster_has_our_users_and_a_name_that_is_found() -> None:
    """The fields are those of the Altinity operator's ClickHouseInstallation."""
    (manifest,) = of_kind("cluster", "ClickHouseInstallation")
    assert manifest["apiVersion"] == "clickhouse.altinity.com/v1"
    spec = manifest["spec"]
    assert set(spec) == {"defaults", "configuration", "templates"}
    used = spec["defaults"]["templates"]
    places = {
        "podTemplate": "podTemplates",
        "dataVolumeClaimTemplate": "volumeClaimTemplates",
        "serviceTemplate": "serviceTemplates",
    }
    for use, place in places.items():
        assert [each["name"] for each in spec["templates"][place]] == [used[use]]
    written = spec["configuration"]["files"]
    assert written["users.d/arena.xml"] == (ROOT / "deploy/clickhouse/users.xml").read_text()
    (service,) = spec["templates"]["serviceTemplates"]
    address = named("cluster", "ConfigMap")["arena"]["data"]["HYBRID_CLICKHOUSE_URL"]
    ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    assert address == f"http://{service['generateName']}:{ports['http']}"


def test_the_readme_names_folders_and_files_that_exist() -> None:
    text = (FOLDER / "README.md").read_text()
    assert set(OVERLAYS) <= set(re.findall(r"-k deploy/kubernetes/(\w+)", text))
    for path in re.findall(r"deploy/[\w./-]+\w", text):
        assert (ROOT / path).exists(), path
