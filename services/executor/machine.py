"""The devices of a real run on this machine: one process each, started when a run needs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from services.executor.device_queue import Device
from shared.domain.spec import RunSpec
from shared.errors import ArenaError, SpecError
from shared.execution.device_process import DeviceProcess
from shared.execution.settings import DeviceSetting, Limits, settings_of
from shared.runtime.logs import logger
from shared.runtime.settings import Settings

Commands = Mapping[str, Sequence[str]]
MakeDevice = Callable[[DeviceSetting, Limits, Commands], Device]

# The memory limit of this process's container: version 2 and version 1 of control groups.
CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)

log = logger()


class CannotExecute(ArenaError):
    """This machine does not have what a run needs."""


class Machine:
    def __init__(
        self, settings: Settings, commands: Commands, make_device: MakeDevice = DeviceProcess
    ) -> None:
        self._settings = settings
        self._commands = commands
        self._make_device = make_device
        self._opened_for: tuple[list[DeviceSetting], Limits] | None = None
        self._devices: list[Device] = []

    async def open(self, spec: RunSpec) -> list[Device]:
        """The devices of the run's platform, by number; those of another platform are stopped."""
        requirements = device_settings(spec), self._limits(spec)
        if requirements == self._opened_for:
            return self._devices
        await self.close()
        self._check(*requirements)
        log.info("starting devices", devices=len(requirements[0]))
        try:
            for setting in requirements[0]:
                device = self._make_device(setting, requirements[1], self._commands)
                await device.start()
                self._devices.append(device)
        except RuntimeError as error:
            await self.close()
            raise CannotExecute(f"the executor's machine: {error}") from None
        self._opened_for = requirements
        return self._devices

    async def close(self) -> None:
        """Stop all devices; no process is left behind."""
        devices, self._devices, self._opened_for = self._devices, [], None
        for device in devices:
            await device.stop()

    def _limits(self, spec: RunSpec) -> Limits:
        limits, settings = spec.execution, self._settings
        return Limits(
            seconds=min(limits.task_seconds, settings.executor_task_seconds),
            memory_mb=min(limits.task_memory_mb, settings.executor_task_memory_mb),
        )

    def _check(self, devices: Sequence[DeviceSetting], limits: Limits) -> None:
        for setting in devices:
            if problem := setting.problem():
                raise CannotExecute(f"the executor's machine: {problem}")
        most = self._settings.executor_memory_mb or 0.8 * machine_memory_mb()
        if (needed := limits.memory_mb * len(devices)) > most:
            raise CannotExecute(
                f"{len(devices)} devices with {limits.memory_mb:g} MB for a task each may take "
                f"{needed:g} MB, more than the {most:.0f} MB that the executor may use of its "
                "machine: lower execution.task_memory_mb, or raise HYBRID_EXECUTOR_MEMORY_MB"
            )


def device_settings(spec: RunSpec) -> list[DeviceSetting]:
    """What each device of the platform is on the machine, by number."""
    settings: list[DeviceSetting] = []
    for entry in spec.cluster.devices:
        assert entry.real is not None, "checked by the spec"
        try:
            settings += settings_of(entry.real.explicit_fields(), entry.count)
        except SpecError as error:
            raise CannotExecute(f"device {entry.type}: {error}") from None
    return settings


def machine_memory_mb(limit_files: Sequence[Path] = CGROUP_LIMITS) -> float:
    """The memory of the machine, or that of the container if it is less."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in limit_files:
        with suppress(OSError, ValueError):  # no such file, or "max"
            sizes.append(int(file.read_text()))
    return min(sizes) / 1e6
