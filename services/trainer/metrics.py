"""The trainer's Prometheus metrics."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter


@dataclass(frozen=True, slots=True)
class Metrics:
    results: Counter
    steps: Counter
    seconds: Counter
    models: Counter

    @classmethod
    def register(cls, registry: CollectorRegistry) -> Metrics:
        def counter(name: str, description: str, *labels: str) -> Counter:
            return Counter(name, description, ["learner", *labels], registry=registry)

        return cls(
            results=counter("hybrid_learned_results_total", "Results received"),
            steps=counter("hybrid_learning_steps_total", "Fits of the forest, steps of the agent"),
            seconds=counter("hybrid_learning_seconds_total", "Time in learning"),
            models=counter("hybrid_models_total", "Models, shipped or kept back", "outcome"),
        )
