"""KEDA: more workers for a scheduler that lags behind, more recorders when results pile up.

A message is a batch of up to 2000 tasks. The generator keeps up to `lead_batches` (24) before the
fastest scheduler, so a lag of that is no sign of slowness; twice that for each worker is.
"""

from __future__ import annotations

from deploy.kubernetes.workloads import PART_OF, WORKLOADS, Manifest
from shared import subjects
from shared.settings import Settings

LEAD = int(Settings.model_fields["lead_batches"].default)
MOST_WORKERS, MOST_RECORDERS = 8, 4
# Of the chart's headless service: KEDA asks the server that leads the consumer, by its own name.
MONITORING = "nats-headless.arena.svc.cluster.local:8222"


def manifests() -> list[Manifest]:
    schedulers = [each for each in WORKLOADS if each.policy]
    results = {subjects.RESULTS: 2 * LEAD * len(schedulers), subjects.TASKS: 2 * LEAD}
    return [
        *(
            _scaled(
                each.name,
                MOST_WORKERS,
                [_trigger(subjects.TASKS, subjects.scheduler_durable(each.policy), 2 * LEAD)],
            )
            for each in schedulers
        ),
        _scaled(
            "recorder",
            MOST_RECORDERS,
            [_trigger(stream, subjects.RECORDER_DURABLE, lag) for stream, lag in results.items()],
        ),
    ]


def _trigger(stream: str, consumer: str, lag: int) -> Manifest:
    return {
        "type": "nats-jetstream",
        "metadata": {
            "natsServerMonitoringEndpoint": MONITORING,
            "account": "$G",
            "stream": stream,
            "consumer": consumer,
            "lagThreshold": str(lag),
        },
    }


def _scaled(name: str, most: int, triggers: list[Manifest]) -> Manifest:
    slowly = {
        # A run that ends leaves no lag at once; the next one may begin soon.
        "stabilizationWindowSeconds": 300,
        "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}],
    }
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name, "labels": PART_OF},
        "spec": {
            "scaleTargetRef": {"name": name},
            # Never none: a scheduler without a worker cannot be chosen for a run.
            "minReplicaCount": 1,
            "maxReplicaCount": most,
            "pollingInterval": 15,
            "cooldownPeriod": 300,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": slowly}}},
            "triggers": triggers,
        },
    }
