"""Energy counters of the machine, if it has some and this user may read them.

RAPL counts a whole processor package: a device counts for its part of the cores. NVML counts a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from shared.execution.settings import DeviceSetting

POWERCAP = Path("/sys/class/powercap")

Counter = Callable[[], float]  # joules since some moment


class EnergyMeter:
    """Joules between two moments."""

    def __init__(self, counter: Counter | None, wraps_at: float = 0.0) -> None:
        self._counter, self._wraps_at = counter, wraps_at
        self._before = 0.0

    def begin(self) -> None:
        if self._counter is not None:
            self._before = self._counter()

    def end(self) -> float | None:
        """Since `begin`; None: there is no counter."""
        if self._counter is None:
            return None
        joules = self._counter() - self._before
        return joules + self._wraps_at if joules < 0 else joules


def meter_of(device: DeviceSetting, powercap: Path = POWERCAP) -> EnergyMeter:
    if device.torch_device is not None:
        return EnergyMeter(_nvml(device.torch_device))
    packages = [
        zone for zone in sorted(powercap.glob("intel-rapl:*")) if zone.name.count(":") == 1
    ]  # Zones with two colons are parts of a package.
    if not packages or not all(os.access(zone / "energy_uj", os.R_OK) for zone in packages):
        return EnergyMeter(None)
    part = len(device.cores) / (os.cpu_count() or 1) * 1e-6
    wraps_at = sum(float((zone / "max_energy_range_uj").read_text()) for zone in packages)

    def read() -> float:
        return part * sum(float((zone / "energy_uj").read_text()) for zone in packages)

    # With several packages one of them may wrap alone; then the largest of their ranges is right.
    return EnergyMeter(read, part * wraps_at / len(packages))


def _nvml(torch_device: str) -> Counter | None:
    if not torch_device.startswith("cuda"):
        return None
    try:
        import pynvml  # type: ignore[import-not-found, import-untyped, unused-ignore]

        pynvml.nvmlInit()
        number = int(torch_device.partition(":")[2] or 0)
        handle = pynvml.nvmlDeviceGetHandleByIndex(number)
        pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    except Exception:  # no library, driver, permission or counter: nothing is measured
        return None
    return lambda: float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) * 1e-3
