"""The executor's Prometheus metrics."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter


@dataclass(frozen=True, slots=True)
class Metrics:
    results: Counter

    @classmethod
    def register(cls, registry: CollectorRegistry) -> Metrics:
        return cls(
            Counter("hybrid_results_total", "Results published", ["scheduler"], registry=registry)
        )
