"""The simulator service: prices decisions; replicas divide the schedulers among themselves."""

from __future__ import annotations

from services.simulator.assignment import Assignment
from services.simulator.partition import Metrics
from shared.bus.service import Service
from shared.runtime.settings import Settings


def make(settings: Settings) -> Service:
    service = Service("simulator", settings)
    assignment = Assignment(service, Metrics.register(service.registry))
    service.background.append(assignment.rebalance)
    service.closing.append(assignment.close)
    return service


def main() -> None:
    make(Settings()).run()
