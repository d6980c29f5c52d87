"""The workloads on Kubernetes in one table, with their Deployments and disruption budgets.

Memory: what `make bench` measured for each process, with headroom for a fast run. CPU: a request
but no limit, since throttling a worker gains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deploy.nats.permissions import password_variable
from shared.domain.schedulers import BUILT_IN, LEARNERS

Manifest = dict[str, Any]

PART_OF = {"app.kubernetes.io/part-of": "hybrid-ml-scheduler"}
NAME = "app.kubernetes.io/name"
HTTP_PORT, GATEWAY_PORT = 8080, 8000
UNPRIVILEGED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


@dataclass(frozen=True, slots=True)
class Workload:
    service: str  # the package and the NATS user
    cpu: str
    memory: str
    memory_limit: str
    policy: str = ""
    uses_store: bool = False
    # Two trainers would each learn from half of the results, and of two executors one would only
    # wait, so the old one stops first.
    single: bool = False

    @property
    def name(self) -> str:
        return f"{self.service}-{self.policy.replace('_', '-')}" if self.policy else self.service

    @property
    def image(self) -> str:
        """The trainer's has torch."""
        return "hybrid-ml-scheduler" + ("-trainer" if self.service == "trainer" else "")

    @property
    def port(self) -> int:
        return GATEWAY_PORT if self.service == "gateway" else HTTP_PORT


def _scheduler(policy: str) -> Workload:
    # Learners load onnxruntime.
    memory = ("384Mi", "768Mi") if policy in LEARNERS else ("192Mi", "384Mi")
    return Workload("scheduler", "100m", *memory, policy=policy)


WORKLOADS = (
    Workload("generator", "100m", "192Mi", "384Mi"),
    Workload("simulator", "500m", "256Mi", "512Mi", uses_store=True),
    # Idle without a real run. One: the others would only stand by.
    Workload("executor", "100m", "256Mi", "4Gi", single=True),
    Workload("recorder", "250m", "256Mi", "768Mi", uses_store=True),
    Workload("trainer", "500m", "1Gi", "2Gi", uses_store=True, single=True),
    Workload("gateway", "100m", "256Mi", "768Mi", uses_store=True),
    *map(_scheduler, BUILT_IN),
)


def manifests() -> list[Manifest]:
    return [make(each) for make in (deployment, budget) for each in WORKLOADS]


def deployment(workload: Workload) -> Manifest:
    labels = {NAME: workload.name, "app.kubernetes.io/component": workload.service} | PART_OF
    # No replicas: `kubectl scale` and KEDA set them, and `kubectl apply` must not undo that.
    strategy = {"strategy": {"type": "Recreate"}} if workload.single else {}
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
        # For the batch in progress.
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
        "image": workload.image,
        "args": [f"services.{workload.service}"],
        "ports": [{"name": "http", "containerPort": workload.port}],
        "envFrom": [{"configMapRef": {"name": "arena"}}],
        "env": _environment(workload),
        "resources": {
            "requests": {"cpu": workload.cpu, "memory": workload.memory},
            "limits": {"memory": workload.memory_limit},
        },
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        **_probes(workload),
    }


def _environment(workload: Workload) -> list[Manifest]:
    variables = {"HYBRID_HTTP_PORT": str(workload.port), "HYBRID_NATS_USER": workload.service}
    if workload.policy:
        variables["HYBRID_POLICY"] = workload.policy
    entries: list[Manifest] = [{"name": name, "value": value} for name, value in variables.items()]
    key = password_variable(workload.service)
    entries.append(_secret("HYBRID_NATS_PASSWORD", "nats-passwords", key))
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
    reference: Manifest = {"name": secret, "key": key, **({"optional": True} if optional else {})}
    return {"name": variable, "valueFrom": {"secretKeyRef": reference}}


def _probes(workload: Workload) -> Manifest:
    """`/alive`: the process answers; `/health`: NATS and ClickHouse answer it as well.

    A pod is never restarted because one of those is down: that would fix nothing. A service listens
    once it has reached NATS, so its start has five minutes. The gateway stays reachable without
    NATS, to report it.
    """

    def probe(path: str, period: int, failures: int) -> Manifest:
        return {
            "httpGet": {"path": path, "port": "http"},
            "periodSeconds": period,
            "timeoutSeconds": 5,
            "failureThreshold": failures,
        }

    ready = "/alive" if workload.service == "gateway" else "/health"
    return {
        "startupProbe": probe("/alive", 5, 60),
        "livenessProbe": probe("/alive", 10, 6),
        "readinessProbe": probe(ready, 5, 3),
    }


def budget(workload: Workload) -> Manifest:
    """Pods may be moved one at a time, and a single one too: its messages stay on the bus."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": workload.name, "labels": PART_OF},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {NAME: workload.name}}},
    }
