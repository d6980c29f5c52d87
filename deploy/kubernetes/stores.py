"""The configuration of NATS and ClickHouse on Kubernetes, from the files that compose mounts.

Kustomize reads no file outside its own folder, so they are copied there.
"""

from __future__ import annotations

from pathlib import Path

from deploy.kubernetes.workloads import NAME, PART_OF, UNPRIVILEGED, Manifest
from deploy.nats.permissions import users_conf
from deploy.nats.server import server_conf
from shared.runtime.settings import Settings

CLICKHOUSE = Path(__file__).parents[1] / "clickhouse"
IMAGE = "clickhouse/clickhouse-server:26.8"

# For `single`; in `cluster` the chart configures NATS, see cluster/nats-values.yaml.
NATS_CONF = server_conf(
    name="nats",
    listen="0.0.0.0:4222",
    http="0.0.0.0:8222",
    store="/data",
    sync_interval=f'"{Settings.model_fields["nats_sync_interval"].default}"',
)


def config_maps() -> list[Manifest]:
    return [
        _config_map("nats-config", {"nats.conf": NATS_CONF, "users.conf": users_conf()}),
        _config_map("clickhouse-config", {"arena.xml": _read("config.xml")}),
        _config_map("clickhouse-users", {"arena.xml": _read("users.xml")}),
    ]


def _read(name: str) -> str:
    return (CLICKHOUSE / name).read_text()


def _config_map(name: str, data: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": PART_OF},
        "data": data,
    }


def clickhouse_installation() -> Manifest:
    """One shard, so that a run's rows stay together (docs/scaling.md: when and how to add one)."""
    templates = {"podTemplate": "server", "dataVolumeClaimTemplate": "data"}
    templates["serviceTemplate"] = "service"
    ports = [{"name": "http", "port": 8123}, {"name": "tcp", "port": 9000}]
    return {
        "apiVersion": "clickhouse.altinity.com/v1",
        "kind": "ClickHouseInstallation",
        "metadata": {"name": "arena", "labels": PART_OF},
        "spec": {
            "defaults": {"templates": templates},
            "configuration": {
                "clusters": [{"name": "arena", "layout": {"shardsCount": 1, "replicasCount": 1}}],
                "files": {
                    "config.d/arena.xml": _read("config.xml"),
                    "users.d/arena.xml": _read("users.xml"),
                },
            },
            "templates": {
                "podTemplates": [{"name": "server", **_clickhouse_pod()}],
                "volumeClaimTemplates": [{"name": "data", "spec": claim("50Gi")}],
                "serviceTemplates": [
                    {
                        "name": "service",
                        "generateName": "clickhouse",
                        "spec": {"type": "ClusterIP", "ports": ports},
                    }
                ],
            },
        },
    }


def claim(size: str) -> Manifest:
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}


def _clickhouse_pod() -> Manifest:
    container = {
        "name": "clickhouse",
        "image": IMAGE,
        "env": [{"name": "CLICKHOUSE_SKIP_USER_SETUP", "value": "1"}],
        # For users.xml.
        "envFrom": [{"secretRef": {"name": "clickhouse-passwords"}}],
        "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "4Gi"}},
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [
            {"name": "scratch", "mountPath": "/tmp", "subPath": "tmp"},
            {"name": "scratch", "mountPath": "/var/log/clickhouse-server", "subPath": "log"},
        ],
    }
    return {
        "metadata": {"labels": {NAME: "clickhouse"}},
        "spec": {
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 101,
                "runAsGroup": 101,
                "fsGroup": 101,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "2Gi"}}],
        },
    }
