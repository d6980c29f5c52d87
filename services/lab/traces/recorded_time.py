"""The size of a task from the seconds it took on the device that it was recorded on.

With the formula, (N / unit) ** exponent / (I + offset) / (speed (1 + slope I)) + transfer = seconds
is solved for N. With measured times, the size at which the curve of the task's kind has that time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from services.lab.traces.problem_report import Report, TraceError
from shared.domain.hardware.cluster_spec import Device
from shared.domain.hardware.platform import DeviceType, Platform
from shared.domain.portable_math import power
from shared.domain.spec import RunSpec
from shared.domain.tasks import LARGEST, Bools, Floats

CPU, GPU = "cpu", "gpu"
# Kinds such as V100M16|V100M32 name the device types that a task may have run on.
ALTERNATIVES = "|"

SMALLEST = 1e-9
# Halving log(LARGEST / SMALLEST) this often leaves a relative error below 1e-15.
HALVINGS = 60


class RecordedTimes:
    def __init__(self, spec: RunSpec, recorded_on: str, report: Report) -> None:
        self._spec = spec
        self._recorded_on = recorded_on
        self._report = report
        accelerator = {CPU: False, GPU: True}
        accelerator |= {each.name: each.accelerator for each in spec.platform.types}
        if recorded_on not in accelerator:
            raise TraceError(
                f"recorded_on: {recorded_on} is no device type of the platform; allowed: "
                f"{', '.join(accelerator)}"
            )
        self.on_cpu = not accelerator[recorded_on]

    def sizes(
        self, seconds: Floats, intensity: Floats, memory: Floats, kind: Sequence[str], on_cpu: Bools
    ) -> Floats:
        """NaN: there is no such size. `on_cpu`: on a CPU, whatever `recorded_on` says."""
        sizes = np.empty(len(seconds))
        kinds = np.asarray(kind or [""] * len(seconds), dtype=np.str_)
        for cpu in (False, True):
            chosen = np.flatnonzero(on_cpu == cpu)
            names, number = np.unique(kinds[chosen], return_inverse=True)
            devices = {str(name): self._device(str(name), cpu) for name in names}
            device_names = np.array([each.name for each in devices.values()], dtype=np.str_)
            for device in {each.name: each for each in devices.values()}.values():
                rows = chosen[(device_names == device.name)[number]]
                compute = seconds[rows] - memory[rows] / device.bandwidth_mb_s
                if self._spec.platform.measured is None:
                    sizes[rows] = self._formula(compute, intensity[rows], device)
                else:
                    sizes[rows] = self._table(compute, kinds[rows].tolist(), device)
        return sizes

    def _formula(self, seconds: Floats, intensity: Floats, device: DeviceType) -> Floats:
        physics = self._spec.physics
        speedup = device.speed * (1.0 + device.speedup_slope * intensity)
        work = np.maximum(seconds, 0.0) * speedup * (intensity + physics.intensity_offset)
        size = physics.size_unit * power(work, 1 / physics.size_exponent)
        return np.where(seconds > 0, size, np.nan)

    def _table(self, seconds: Floats, kind: Sequence[str], device: DeviceType) -> Floats:
        platform = self._spec.platform
        assert platform.measured is not None
        column = platform.number_of(device.name)
        low, high = np.full(len(seconds), SMALLEST), np.full(len(seconds), LARGEST)
        for _ in range(HALVINGS):
            middle = np.sqrt(low * high)
            too_long = platform.measured.seconds(kind, middle)[:, column] > seconds
            low, high = np.where(too_long, low, middle), np.where(too_long, middle, high)
        known = np.isfinite(platform.measured.seconds(kind, high)[:, column])
        return np.where(known & (seconds > 0), high, np.nan)

    def _device(self, kind: str, on_cpu: bool) -> DeviceType:
        platform = self._spec.platform
        named = {each.name.lower(): each for each in platform.types}
        if not on_cpu and self._recorded_on == GPU:
            for name in kind.lower().split(ALTERNATIVES):
                if name in named and named[name].accelerator:
                    return named[name]
        device = CPU if on_cpu else self._recorded_on
        if device.lower() in named:
            return named[device.lower()]
        same = [each for each in platform.types if each.accelerator == (device == GPU)]
        if not same:
            return self._absent(device)
        most = max(same, key=lambda each: each.count)
        if len(same) > 1:
            self._report.note(
                f"which {device.upper()} the times were recorded on is not known; taken as "
                f"{most.name}, of which the platform has most (mapping: recorded_on)"
            )
        return most

    def _absent(self, device: str) -> DeviceType:
        """The device type of the short form, for a kind of device that the platform lacks."""
        if self._spec.platform.measured is not None:
            raise TraceError(
                f"the times were recorded on a {device.upper()}, and the platform's table has none "
                "(mapping: recorded_on)"
            )
        self._report.note(
            f"the platform has no {device.upper()}, on which the times were recorded; taken as one "
            "with the default speed (mapping: recorded_on)"
        )
        defaults = self._spec.physics.defaults(self._spec.cluster.gpu_memory_mb)
        return Platform([Device(type=device)], {"node": 1}, defaults).types[0]
