"""The simulator service: prices decisions; replicas divide the schedulers among themselves."""

from __future__ import annotations

from services.simulator.assignment import Assignment
from services.simulator.fork_starts import ForkStarts
from services.simulator.partition import Metrics
from shared.bus.service import Service
from shared.runtime.settings import Settings
from shared.store.client import Store


def make(settings: Settings) -> Service:
    service = Service("simulator", settings)
    assignment = Assignment(service, Metrics.register(service.registry))
    forks = ForkStarts(service, Store(settings), assignment.owned)
    service.background += [assignment.rebalance, forks.follow_runs]
    service.closing.append(assignment.close)
    return service


def main() -> None:
    make(Settings()).run()
