"""The devices of a run, as its stored spec describes them. No code of the product."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Spec = dict[str, Any]  # as `runs` has it: complete, so no default is needed here

MOST_METERS = 256


class Devices:
    """Numbered in the order of the spec's list: all of an entry, node by node, then the next one.
    In the short form: the GPUs, then the CPUs."""

    def __init__(self, spec: Spec) -> None:
        cluster = spec["cluster"]
        entries = cluster["devices"] or [
            _short_form("gpu", cluster["gpus"], cluster["gpu_memory_mb"]),
            _short_form("cpu", cluster["cpus"], None),
        ]
        counts = {node["name"]: node["count"] for node in cluster["nodes"]} or {
            entry["node"]: 1 for entry in entries
        }
        first = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
        self.nodes: int = sum(counts.values())
        self.types = {entry["type"]: _description(entry, spec) for entry in reversed(entries)}
        names = list(dict.fromkeys(entry["type"] for entry in entries))
        self.types = {name: self.types[name] for name in names}
        placed = [
            (names.index(entry["type"]), first[entry["node"]] + replica)
            for entry in entries
            for replica in range(counts[entry["node"]])
            for _ in range(entry["count"])
        ]
        self.type_of, self.node_of = np.array(placed).T
        accelerator = np.array([each["accelerator"] for each in self.types.values()])
        self.accelerators = np.flatnonzero(accelerator[self.type_of])
        self.cpus = np.flatnonzero(~accelerator[self.type_of])
        self.counts = np.bincount(self.type_of)
        # By type: its devices in node order.
        order = np.argsort(self.node_of, kind="stable")
        self.same = [order[self.type_of[order] == number] for number in range(len(names))]
        self.meter_of = self._meters()

    def __len__(self) -> int:
        return len(self.type_of)

    def column(self, name: str) -> Any:
        """What the spec says of each type."""
        return np.array([each[name] for each in self.types.values()])

    def rotation(self, task_id: Any) -> Any:
        if not len(self.accelerators):
            return np.full(len(task_id), -1)
        return self.accelerators[task_id % len(self.accelerators)]

    def cpu_beside(self, device: Any, task_id: Any) -> Any:
        """In rotation among the CPUs of the device's node; of all nodes without a device."""
        found = np.full(len(task_id), -1)
        for node in range(-1, self.nodes):
            if node < 0:
                here, cpus = device < 0, self.cpus
            else:
                here = (device >= 0) & (self.node_of[device] == node)
                cpus = self.cpus[self.node_of[self.cpus] == node]
            if len(cpus) and here.any():
                found[here] = cpus[task_id[here] % len(cpus)]
        return found

    def gang(self, device: int, width: int) -> list[int]:
        """That device and the next ones of its type, around the end."""
        same = self.same[self.type_of[device]].tolist()
        at = same.index(device)
        return (same[at:] + same[:at])[:width]

    def _meters(self) -> Any:
        if len(self) <= MOST_METERS:
            return np.arange(len(self))
        _, groups = np.unique(self.type_of * self.nodes + self.node_of, return_inverse=True)
        return groups if groups.max() < MOST_METERS else self.type_of


def _short_form(name: str, count: int, memory: float | None) -> dict[str, Any]:
    left_out = ("accelerator", "bandwidth_mb_s", "speedup_slope", "watts", "dollars_per_s")
    entry = {"type": name, "count": count, "node": "node", "memory_mb": memory}
    return {**dict.fromkeys(left_out), **entry, "speed": 1.0, "idle_watts": 0.0}


def _description(entry: dict[str, Any], spec: Spec) -> dict[str, Any]:
    """An entry with what it leaves out."""
    physics = spec["physics"]
    accelerator = entry["accelerator"]
    if accelerator is None:
        accelerator = not entry["type"].lower().startswith("cpu")
    left_out = {
        "memory_mb": spec["cluster"]["gpu_memory_mb"] if accelerator else math.inf,
        "bandwidth_mb_s": physics["bandwidth_mb_s"] if accelerator else math.inf,
        "speedup_slope": physics["speedup_slope"] if accelerator else 0.0,
        "watts": physics["gpu_watts" if accelerator else "cpu_watts"],
        "dollars_per_s": physics["gpu_dollars_per_s" if accelerator else "cpu_dollars_per_s"],
    }
    given = {name: value for name, value in entry.items() if value is not None}
    return {**left_out, **given, "accelerator": accelerator}
