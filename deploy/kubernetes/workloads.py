"""What runs on Kubernetes, in one table, and the Deployment and disruption budget of each.

Memory: what `make bench` measured of each process, with room above it for a fast run. CPU: what
keeps a place for it, and no limit, since a throttled worker is a slow one for no gain.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.nats.permissions import password_variable

Manifest = dict[str, Any]

POLICIES = Path(__file__).parents[2] / "services/scheduler/policies"
PART_OF = {"app.kubernetes.io/part-of": "hybrid-ml-scheduler"}
NAME = "app.kubernetes.io/name"
HTTP_PORT, GATEWAY_PORT = 8080, 8000


@dataclass(frozen=True, slots=True)
class Workload:
    service: str  # the package, and the user on the bus
    cpu: str
    memory: str
    memory_limit: str
    policy: str = ""
    uses_store: bool = False
    # Two would learn half of the results each: the old one must be gone before the new one starts.
    alone: bool = False

    @property
    def name(self) -> str:
        return f"{self.service}-{self.policy.replace('_', '-')}" if self.policy else self.service

    @property
    def port(self) -> int:
        return GATEWAY_PORT if self.service == "gateway" else HTTP_PORT


def _scheduler(policy: str) -> Workload:
    learned = policy in ("hybrid_ml", "rl_agent")  # with onnxruntime or torch
    memory = ("384Mi", "768Mi") if learned else ("192Mi", "384Mi")
    return Workload("scheduler", "100m", *memory, policy=policy)


WORKLOADS = (
    Workload("generator", "100m", "192Mi", "384Mi"),
    Workload("simulator", "500m", "256Mi", "512Mi"),
    Workload("recorder", "250m", "256Mi", "768Mi", uses_store=True),
    Workload("trainer", "500m", "1Gi", "2Gi", uses_store=True, alone=True),
    Workload("gateway", "100m", "256Mi", "768Mi", uses_store=True),
    *(
        _scheduler(file.stem)
        for file in sorted(POLICIES.glob("*.py"))
        if not file.stem.startswith("_")
    ),
)


def manifests() -> list[Manifest]:
    return [make(each) for make in (deployment, budget) for each in WORKLOADS]


def deployment(workload: Workload) -> Manifest:
    labels = {NAME: workload.name, "app.kubernetes.io/component": workload.service} | PART_OF
    # How many there are is for `kubectl scale` and KEDA to say: an `apply` must not undo it.
    strategy = {"strategy": {"type": "Recreate"}} if workload.alone else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": workload.name, "labels": labels},
        "spec": {
            "selector": {"matchLabels": {NAME: workload.name}},
            **strategy,
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {
                        "prometheus.io/scrape": "true",
                        "prometheus.io/port": str(workload.port),
                    },
                },
                "spec": _pod(workload),
            },
        },
    }


def _pod(workload: Workload) -> Manifest:
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # A service finishes the batch it works on.
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "runAsGroup": 10001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {NAME: workload.name}},
            }
        ],
        "containers": [_container(workload)],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}}],
    }


def _container(workload: Workload) -> Manifest:
    return {
        "name": workload.service,
        "image": "hybrid-ml-scheduler",
        "args": [f"services.{workload.service}"],
        "ports": [{"name": "http", "containerPort": workload.port}],
        "envFrom": [{"configMapRef": {"name": "arena"}}],
        "env": _environment(workload),
        "resources": {
            "requests": {"cpu": workload.cpu, "memory": workload.memory},
            "limits": {"memory": workload.memory_limit},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        **_probes(workload),
    }


def _environment(workload: Workload) -> list[Manifest]:
    own = {"HYBRID_HTTP_PORT": str(workload.port), "HYBRID_NATS_USER": workload.service}
    if workload.policy:
        own["HYBRID_POLICY"] = workload.policy
    entries: list[Manifest] = [{"name": name, "value": value} for name, value in own.items()]
    bus = password_variable(workload.service)
    entries.append(_secret("HYBRID_NATS_PASSWORD", "nats-passwords", bus))
    if workload.uses_store:
        entries.append(
            _secret("HYBRID_CLICKHOUSE_PASSWORD", "clickhouse-passwords", "CLICKHOUSE_PASSWORD")
        )
    entries.append(_secret("HYBRID_MODEL_PUBLIC_KEY", "model-key", "public", optional=True))
    if workload.service == "trainer":
        entries.append(_secret("HYBRID_MODEL_KEY", "model-key", "key", optional=True))
    if workload.service == "gateway":
        entries.append(_secret("HYBRID_GATEWAY_TOKEN", "gateway-token", "token"))
    return entries


def _secret(variable: str, secret: str, key: str, *, optional: bool = False) -> Manifest:
    place: Manifest = {"name": secret, "key": key, **({"optional": True} if optional else {})}
    return {"name": variable, "valueFrom": {"secretKeyRef": place}}


def _probes(workload: Workload) -> Manifest:
    """`/alive` says that the process answers, `/health` that NATS and ClickHouse do as well.

    A pod is never restarted because one of those is away: that would mend nothing. Until NATS is
    there a service does not listen, so its start has five minutes. The gateway stays reachable
    without NATS: it is what tells people.
    """

    def asked(path: str, period: int, failures: int) -> Manifest:
        return {
            "httpGet": {"path": path, "port": "http"},
            "periodSeconds": period,
            "timeoutSeconds": 5,
            "failureThreshold": failures,
        }

    ready = "/alive" if workload.service == "gateway" else "/health"
    return {
        "startupProbe": asked("/alive", 5, 60),
        "livenessProbe": asked("/alive", 10, 6),
        "readinessProbe": asked(ready, 5, 3),
    }


def budget(workload: Workload) -> Manifest:
    """One at a time may be moved; a lone one may as well, since nothing is lost meanwhile."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": workload.name, "labels": PART_OF},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {NAME: workload.name}}},
    }
