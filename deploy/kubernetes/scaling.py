"""KEDA: more workers for a scheduler that lags, more recorders when results pile up.

A message is a batch of up to 2000 tasks. The generator stays up to `lead_batches` (24) ahead of the
fastest scheduler, so only twice that lag for each worker means that a scheduler is slow.
"""

from __future__ import annotations

from deploy.kubernetes.workloads import PART_OF, WORKLOADS, Manifest
from shared.messages import subjects
from shared.runtime.settings import Settings

LEAD = int(Settings.model_fields["lead_batches"].default)
MOST_WORKERS, MOST_RECORDERS = 8, 4
# The chart's headless service: KEDA queries the consumer's leader by that server's own name.
MONITORING = "nats-headless.arena.svc.cluster.local:8222"


def manifests() -> list[Manifest]:
    schedulers = [each for each in WORKLOADS if each.policy]
    recorder_lag = {subjects.RESULTS: 2 * LEAD * len(schedulers), subjects.TASKS: 2 * LEAD}
    triggers = {
        each.name: [_trigger(subjects.TASKS, 2 * LEAD, subjects.scheduler_durable(each.policy))]
        for each in schedulers
    }
    recorder = [_trigger(*item, subjects.RECORDER_DURABLE) for item in recorder_lag.items()]
    return [
        *(_scaled(name, MOST_WORKERS, own) for name, own in triggers.items()),
        _scaled("recorder", MOST_RECORDERS, recorder),
    ]


def _trigger(stream: str, lag: int, consumer: str) -> Manifest:
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
    scale_down = {
        # After a run the lag is gone at once, but the next run may start soon.
        "stabilizationWindowSeconds": 300,
        "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}],
    }
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name, "labels": PART_OF},
        "spec": {
            "scaleTargetRef": {"name": name},
            # Never 0: a run cannot include a scheduler without a worker.
            "minReplicaCount": 1,
            "maxReplicaCount": most,
            "pollingInterval": 15,
            "cooldownPeriod": 300,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": scale_down}}},
            "triggers": triggers,
        },
    }
