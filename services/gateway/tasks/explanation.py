"""Why a result is what it is, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from services.gateway.tasks.device_names import cpus_of
from shared.domain.hardware.platform import NOWHERE
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats

# A difference of share or time that is too small to mention.
NEGLIGIBLE = 0.001


@dataclass(frozen=True, slots=True)
class Best:
    """The Oracle's decision."""

    share: float
    seconds: float | None  # None: no device can run the task
    device_name: str | None
    cpu_name: str | None

    def __str__(self) -> str:
        if self.device_name is None or self.cpu_name is None:
            return f"all of it on {self.device_name or self.cpu_name}"
        return f"{self.share * 100:.3g} % on {self.device_name}, the rest on {self.cpu_name}"


def explain(row: Mapping[str, Any], spec: RunSpec, expected: Floats, best: Best) -> str:
    """`row` is a complete result with the task's features, `expected` its seconds on every type."""
    placement = Placement(row, spec, expected)
    if row["status"] == "failed":
        return placement.failure()
    text = placement.text()
    if row["wait"] > 1e-9:
        text += f", after {seconds(row['wait'])} of waiting"
    if best.seconds is None:
        return text
    if row["time"] <= best.seconds * (1 + 1e-9):
        return f"{text}; no decision is faster"
    if row["time"] <= best.seconds * (1 + NEGLIGIBLE):
        return f"{text}; no decision is noticeably faster"
    return f"{text}; the Oracle's decision, {best}, would have taken {seconds(best.seconds)}"


class Placement:
    """Where a task ran, and why there."""

    def __init__(self, row: Mapping[str, Any], spec: RunSpec, expected: Floats) -> None:
        self._row, self._spec, self._platform = row, spec, spec.platform
        self._device = int(row["device"])
        cpu = cpus_of(np.array([row["cpu"]]), np.array([row["task_id"]]), spec.platform)
        self._cpu = int(cpu[0])
        self._can_device = self._can_run(self._device, expected)
        self._can_cpu = self._can_run(self._cpu, expected)
        self._reasons: list[str] = []
        self._share = self._possible_share(row["gpu_fraction"])
        self._overflow = 0.0
        if self._share > 0:
            room = self._platform.memory_mb[self._platform.type_of[self._device]] * row["width"]
            self._overflow = max(self._share * row["memory_required"] - room, 0.0)
            if self._overflow:
                self._reasons.append(self._too_big(float(room)))
        if self._overflow and spec.physics.memory_policy == "cpu" and self._can_cpu:
            self._share = 0.0

    def _can_run(self, device: int, expected: Floats) -> bool:
        return device != NOWHERE and bool(np.isfinite(expected[self._platform.type_of[device]]))

    def _possible_share(self, share: float) -> float:
        """The decided share as far as the task and the devices allow it."""
        if 0 < share < 1 and (not self._row["divisible"] or self._row["width"] > 1):
            self._reasons.append("it cannot be split")
            share = 1.0 if share >= 0.5 else 0.0
        if share > 0 and not self._can_device:
            self._reasons.append(self._cannot_run(self._device, "accelerator"))
            return 0.0
        if share < 1 and not self._can_cpu:
            self._reasons.append(self._cannot_run(self._cpu, "CPU"))
            return 1.0
        return share

    def failure(self) -> str:
        if not (self._can_device or self._can_cpu):
            why = "none of the chosen devices can run it"
        else:
            why = ", and ".join(self._reasons)
        if not self._row["time"]:
            return f"failed: {why}"
        charged = "was charged as if it had run on the slowest device type that can run it"
        return f"failed: {why}; it {charged}: {seconds(self._row['time'])}"

    def text(self) -> str:
        paging = self._overflow > 0 and self._share > 0
        reasons = self._reasons[:-1] if paging else self._reasons
        because = f"{', and '.join(reasons)}, so " if reasons else ""
        if self._share == 0:
            return f"{because}all of it ran on {self._on_cpu()}"
        text = f"{because}{self._part()} ran on {self._name(self._device)}: {self._on_device()}"
        if self._row["cpu_time"] <= NEGLIGIBLE * self._row["gpu_time"]:
            return text
        if self._spec.physics.split == "serial":
            return f"{text}, then the rest on {self._on_cpu()}"
        return f"{text}, while the rest ran on {self._on_cpu()}"

    def _on_device(self) -> str:
        """What the accelerator's time was spent on."""
        transfer = self._share * self._row["memory_required"] + self._overflow
        transfer /= self._platform.bandwidth_mb_s[self._platform.type_of[self._device]]
        moving = self._share * self._moving(self._device)
        compute = max(self._row["gpu_time"] - transfer - moving, 0.0)
        spent = [f"{seconds(compute)} of compute"]
        if transfer > 0:
            twice = " (what does not fit is moved twice)" if self._overflow else ""
            spent.append(f"{seconds(transfer)} of transfer{twice}")
        if moving > 0:
            spent.append(self._moved(moving, self._device))
        *first, last = spent
        return f"{', '.join(first)} and {last}" if first else last

    def _on_cpu(self) -> str:
        text = f"{self._name(self._cpu)}: {seconds(self._row['cpu_time'])}"
        moving = (1 - self._share) * self._moving(self._cpu)
        return f"{text}, of which {self._moved(moving, self._cpu)}" if moving > 0 else text

    def _part(self) -> str:
        if self._share > 1 - NEGLIGIBLE:
            return "all of it" if self._share == 1 else "nearly all of it"
        return f"{self._share * 100:.3g} %"

    def _too_big(self, room: float) -> str:
        size = self._share * self._row["memory_required"]
        name = self._name(self._device)
        return f"{self._part()} ({size:,.0f} MB) does not fit the {room:,.0f} MB of {name}"

    def _cannot_run(self, device: int, what: str) -> str:
        return f"there is no {what}" if device == NOWHERE else f"{self._name(device)} cannot run it"

    def _name(self, device: int) -> str:
        (name,) = self._platform.device_names([device])
        more = self._row["width"] - 1
        return f"{name} and {more} more" if more else name

    def _moving(self, device: int) -> float:
        """Seconds to move the task's data to the device's node."""
        home, network = self._row["home"], self._spec.cluster.network
        names, node = self._platform.node_names, self._platform.node_of[device]
        if not 0 <= home < len(names) or node == home:
            return 0.0
        return float(self._row["memory_required"] / network.bandwidth_mb_s + network.latency_s)

    def _moved(self, moving: float, device: int) -> str:
        names, node = self._platform.node_names, self._platform.node_of[device]
        home = names[self._row["home"]]
        return f"{seconds(moving)} to move its data from {home} to {names[node]}"


def seconds(value: float) -> str:
    """
    >>> seconds(12.04), seconds(0.3149), seconds(0.0000021)
    ('12 s', '315 ms', '2.1 µs')
    """
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"
