"""Means of utilisation over schedulers, devices and device types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from services.gateway.live.schemas import (
    DeviceUtilization,
    SchedulerUtilization,
    UtilizationNow,
)
from shared.domain.hardware.platform import Meter
from shared.domain.tasks import Floats

ByMeter = dict[str, dict[str, float]]  # shares by scheduler and meter


class UtilizationAverages:
    """Every device of the cluster counts the same, whatever the number of devices of a meter."""

    def __init__(self, meters: Sequence[Meter]) -> None:
        self._names = [meter.name for meter in meters]
        self._types = list(dict.fromkeys(meter.type for meter in meters))
        devices = np.array([meter.devices for meter in meters])
        of_type = np.array([[meter.type == name for meter in meters] for name in self._types])
        self._weights = devices / devices.sum()
        self._type_weights = of_type * devices / (of_type @ devices)[:, None]

    def of(self, now: ByMeter, changed: ByMeter) -> UtilizationNow:
        """The means of all schedulers, and those of each one that has changed."""
        shares = np.array([list(used.values()) for used in now.values()])
        mean = shares.mean(axis=0) if len(now) else np.zeros(len(self._names))
        return UtilizationNow(
            average_utilization=float(self._weights @ mean),
            types=self._by_type(mean),
            schedulers={
                name: SchedulerUtilization(
                    average_utilization=float(self._weights @ list(used.values())),
                    types=self._by_type(np.array(list(used.values()))),
                    devices=used,
                )
                for name, used in changed.items()
            },
            **{
                name: DeviceUtilization(utilization=share)
                for name, share in zip(self._names, mean.tolist(), strict=True)
            },
        )

    def _by_type(self, shares: Floats) -> dict[str, float]:
        return dict(zip(self._types, (self._type_weights @ shares).tolist(), strict=True))
