"""The executor service: runs the tasks of real runs on the devices of its machine."""

from __future__ import annotations

import os
import sys

from services.executor.commands import load_commands
from services.executor.executor import Executor
from services.executor.machine import Machine, MakeDevice
from services.executor.metrics import Metrics
from shared.bus.service import Service
from shared.errors import SpecError
from shared.execution.device_process import DeviceProcess
from shared.runtime.settings import Settings


def make(settings: Settings, make_device: MakeDevice = DeviceProcess) -> Service:
    service = Service("executor", settings)
    machine = Machine(settings, load_commands(settings.commands), make_device)
    executor = Executor(service, machine, Metrics.register(service.registry))
    service.background.append(executor.follow_runs)
    service.closing.append(executor.close)
    return service


def forget_secrets() -> None:
    """Device processes and commands inherit the environment: they need none of our settings."""
    for name in [name for name in os.environ if name.startswith("HYBRID_")]:
        del os.environ[name]


def main() -> None:
    settings = Settings()
    forget_secrets()
    try:
        service = make(settings)
    except SpecError as error:
        sys.exit(str(error))
    service.run()
