"""What every stored result must satisfy, written once more from the published rules.

Prices are equations over whole columns; starts follow from the insertion rule, task by task.
Carried from one chunk of tasks to the next are only the idle times of each device, the finish of
tasks that may have children and the running totals.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.chaos.clickhouse import Columns
from tests.chaos.devices import Devices, Spec
from tests.chaos.timelines import place, timelines

SUMMED = ("time", "wait", "turnaround", "energy", "cost", "cost_cloud", "cost_electricity")
QUANTILES = {"turnaround_p50": 0.5, "turnaround_p95": 0.95, "turnaround_p99": 0.99}
OK, FAILED = 0, 1  # statuses, as the checker's queries number them
CHILDREN_WITHIN = 256  # of a task that does not say which one is its last child


def chosen(tasks: Columns, results: Columns, devices: Devices) -> tuple[Any, Any]:
    """The device and the CPU of each decision; where it names none, that of the rotation."""
    task_id, device = tasks["task_id"], results["device"].astype(np.int64)
    device = np.where(device < 0, devices.rotation(task_id), device)
    beside = devices.cpu_beside(np.where(results["gpu_fraction"] > 0, device, -1), task_id)
    return device, np.where(results["cpu"] < 0, beside, results["cpu"])


def seconds(tasks: Columns, spec: Spec, devices: Devices) -> Any:
    """The seconds of each whole task on each device type."""
    physics = spec["physics"]
    if physics["measured"] or physics["noise"]:
        raise ValueError("the checker knows the formula alone, without measured times and noise")
    work = _power(tasks["size"] / physics["size_unit"], physics["size_exponent"])
    base = work / (tasks["compute_intensity"] + physics["intensity_offset"])
    times = []
    for kind in devices.types.values():
        speedup = kind["speed"] * (1.0 + kind["speedup_slope"] * tasks["compute_intensity"])
        time = base / speedup + tasks["memory_required"] / kind["bandwidth_mb_s"]
        times.append(time)
    found = np.array(times).T
    found[tasks["width"][:, None] > devices.counts] = np.inf
    return found


def priced(tasks: Columns, results: Columns, spec: Spec, devices: Devices) -> Columns:
    """What the physics gives for the decisions that were taken: the published formulas.

    They are written out here once more, to be another witness than the simulator's. Sums and
    products are in the order of the formulas, since another one would be rounded otherwise.
    """
    physics, policy = spec["physics"], spec["physics"]["memory_policy"]
    memory, width = tasks["memory_required"], tasks["width"]
    times = seconds(tasks, spec, devices)
    device, cpu = chosen(tasks, results, devices)
    on_gpu = _seconds_on(device, times, tasks, spec, devices)
    on_cpu = _seconds_on(cpu, times, tasks, spec, devices)
    kind, host = devices.type_of[device], devices.type_of[cpu]
    bandwidth = devices.column("bandwidth_mb_s")[kind]
    gpu_can, cpu_can = np.isfinite(on_gpu), np.isfinite(on_cpu)
    together = devices.node_of[device] == devices.node_of[cpu]
    share = results["gpu_fraction"]
    whole = ~tasks["divisible"].astype(bool) | (width > 1) | ~together
    share = np.where(whole, np.where(share >= 0.5, 1.0, 0.0), share)
    share = np.where(gpu_can & cpu_can, share, np.where(gpu_can, 1.0, 0.0))
    overflow = share * memory - devices.column("memory_mb")[kind] * width
    too_big = overflow > 0
    failed = ~gpu_can & ~cpu_can
    if policy == "cpu":
        share = np.where(too_big & cpu_can, 0.0, share)
        failed |= too_big & ~cpu_can
    elif policy == "fail":
        failed |= too_big
    with np.errstate(invalid="ignore"):
        gpu = np.where(share > 0, share * on_gpu, 0.0)
        rest = np.where(share < 1, (1.0 - share) * on_cpu, 0.0)
        if policy == "page":
            gpu = np.where(too_big, gpu + overflow / bandwidth, gpu)
    charge = _failure_charge(times, tasks, spec, devices)
    on_device = (device >= 0) & ((results["gpu_fraction"] > 0) | (cpu < 0))
    gpu = np.where(failed, np.where(on_device, charge, 0.0), gpu)
    rest = np.where(failed, np.where(on_device, 0.0, charge), rest)
    watts, dollars = devices.column("watts"), devices.column("dollars_per_s")
    energy = (watts[kind] * gpu + watts[host] * rest) * width
    costs = {
        "cloud": (dollars[kind] * gpu + dollars[host] * rest) * width,
        "electricity": energy / 3.6e6 * physics["dollars_per_kwh"],
    }
    return {
        "gpu_time": gpu,
        "cpu_time": rest,
        "time": gpu + rest if physics["split"] == "serial" else np.maximum(gpu, rest),
        "energy": energy,
        "cost": costs[physics["cost_model"]],
        "cost_cloud": costs["cloud"],
        "cost_electricity": costs["electricity"],
        "status": np.where(failed, FAILED, OK).astype(np.uint8),
    }


def _seconds_on(device: Any, times: Any, tasks: Columns, spec: Spec, devices: Devices) -> Any:
    found = times[np.arange(len(device)), devices.type_of[device]]
    away = (tasks["home"] >= 0) & (tasks["home"] != devices.node_of[device]) & (devices.nodes > 1)
    found = np.where(away, found + _transfer(tasks, spec), found)
    return np.where(device < 0, np.inf, found)


def _transfer(tasks: Columns, spec: Spec) -> Any:
    network = spec["cluster"]["network"]
    return tasks["memory_required"] / network["bandwidth_mb_s"] + network["latency_s"]


def _failure_charge(times: Any, tasks: Columns, spec: Spec, devices: Devices) -> Any:
    """The slowest type that can run the task, with its paging, on another node than its data's."""
    charges = []
    for number, kind in enumerate(devices.types.values()):
        charge = times[:, number]
        if spec["physics"]["memory_policy"] == "page" and kind["accelerator"]:
            over = np.maximum(tasks["memory_required"] - kind["memory_mb"] * tasks["width"], 0.0)
            charge = charge + over / kind["bandwidth_mb_s"]
        if devices.nodes > 1:
            charge = charge + np.where(tasks["home"] >= 0, _transfer(tasks, spec), 0.0)
        charges.append(np.where(np.isfinite(charge), charge, 0.0))
    return np.max(charges, axis=0)


def _power(base: Any, exponent: float) -> Any:
    """The exponent 1.5 by square root: other exponents differ in bits between machines."""
    if exponent != 1.5:
        raise ValueError(f"the checker knows the exponent 1.5 alone, not {exponent}")
    return base * np.sqrt(base)


class Course:
    """What one scheduler's run carries from chunk to chunk."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self.devices = Devices(spec)
        self._timelines = timelines(len(self.devices))
        self._finished: dict[int, tuple[float, int]] = {}  # with the last child of each task
        self._clock = 0.0
        self._totals: dict[str, float] = {}
        self._turnarounds: dict[int, int] = {}  # how many are in each bucket

    def scheduled(self, tasks: Columns, results: Columns) -> Columns:
        """When parts must have started and tasks finished."""
        overlapped = self._spec["physics"]["split"] == "overlapped"
        device, cpu = chosen(tasks, results, self.devices)
        parents = tasks["dependencies"].to_pylist()
        found = np.empty((3, len(parents)))
        for i, (task_id, ready, gpu_time, cpu_time, width) in enumerate(
            zip(
                *(tasks[name].tolist() for name in ("task_id", "arrival_time")),
                *(results[name].tolist() for name in ("gpu_time", "cpu_time")),
                tasks["width"].tolist(),
                strict=True,
            )
        ):
            self._clock = max(self._clock, ready)
            for parent in parents[i]:
                ready = max(ready, self._clock, self._finished.get(parent, (0.0, 0))[0])
            gpu_start = end = ready
            if gpu_time > 0:
                gpu_start = self._place(int(device[i]), width, ready, gpu_time)
                end = gpu_start + gpu_time
            cpu_start = ready if overlapped else end
            if cpu_time > 0:
                cpu_start = self._place(int(cpu[i]), width, cpu_start, cpu_time)
                end = max(end, cpu_start + cpu_time)
            found[:, i] = gpu_start, cpu_start, end
            last_child = int(tasks["last_child"][i])
            last_child = task_id + CHILDREN_WITHIN if last_child < 0 else last_child
            if last_child > task_id:
                self._finished[task_id] = (end, last_child)
        following = int(tasks["task_id"][-1]) + 1
        self._finished = {t: known for t, known in self._finished.items() if known[1] >= following}
        turnaround = found[2] - tasks["arrival_time"]
        return {
            "gpu_start": found[0],
            "cpu_start": found[1],
            "finish": found[2],
            "turnaround": turnaround,
            "wait": np.maximum(turnaround - results["time"], 0.0),
        }

    def _place(self, device: int, width: int, ready: float, length: float) -> float:
        gang = [device] if width == 1 else self.devices.gang(device, width)
        return place([self._timelines[n] for n in gang], ready, length, self._clock)

    def added_up(self, tasks: Columns, results: Columns) -> Columns:
        """The totals after each task of the chunk, added in task order; quantiles after each
        batch."""
        found: Columns = {f"total_{name}": self._sum(name, results[name]) for name in SUMMED}
        found["failed"] = self._sum("failed", results["status"] == FAILED)
        found["gpu_tasks"] = self._sum("gpu_tasks", results["gpu_time"] > 0)
        found["makespan"] = self._largest("makespan", results["finish"])
        found["clock"] = self._largest("clock", tasks["arrival_time"])
        best = seconds(tasks, self._spec, self.devices).min(axis=1)
        reference = np.maximum(best, self._spec["physics"]["slowdown_floor_s"])
        slowdown = np.maximum(results["turnaround"] / reference, 1.0)
        found["total_slowdown"] = self._sum("slowdown", slowdown)
        found |= self._quantiles(results)
        busy = self._busy(tasks, results)
        found["idle_energy"] = self._idle_energy(busy, found["makespan"])
        return found | {f"busy[{number}]": column for number, column in enumerate(busy)}

    def _busy(self, tasks: Columns, results: Columns) -> list[Any]:
        """The work of each meter after each task: each part counts on all of its devices."""
        rows: list[list[int]] = [[] for _ in range(self.devices.meter_of.max() + 1)]
        work: list[list[float]] = [[] for _ in rows]
        devices = chosen(tasks, results, self.devices)
        for device, name in zip(devices, ("gpu_time", "cpu_time"), strict=True):
            for row in np.flatnonzero(results[name] > 0).tolist():
                width = int(tasks["width"][row])
                first = int(device[row])
                gang = [first] if width == 1 else self.devices.gang(first, width)
                for number in gang:
                    meter = self.devices.meter_of[number]
                    rows[meter].append(row)
                    work[meter].append(results[name][row])
        found = []
        for meter, (where, values) in enumerate(zip(rows, work, strict=True)):
            before = self._totals.get(f"busy {meter}", 0.0)
            running = np.add.accumulate([before, *values])
            self._totals[f"busy {meter}"] = float(running[-1])
            counted = np.searchsorted(where, np.arange(len(tasks["task_id"])), side="right")
            found.append(running[counted])
        return found

    def _idle_energy(self, busy: list[Any], makespan: Any) -> Any:
        devices = np.bincount(self.devices.meter_of)
        watts = self.devices.column("idle_watts")
        total = 0.0
        for meter, worked in enumerate(busy):
            kind = self.devices.type_of[np.argmax(self.devices.meter_of == meter)]
            total = total + watts[kind] * np.maximum(devices[meter] * makespan - worked, 0.0)
        return total

    def _quantiles(self, results: Columns) -> Columns:
        """The middle of the bucket that each quantile is in: 64 buckets for each power of two."""
        found = {name: np.full(len(results["batch"]), np.nan) for name in QUANTILES}
        fraction, exponent = np.frexp(np.maximum(results["turnaround"], 2.0**-30))
        bucket = exponent * 64 + np.floor((fraction * 2 - 1) * 64).astype(np.int64)
        ends = np.flatnonzero(np.append(np.diff(results["batch"].astype(np.int64)) != 0, True))
        start = 0
        for end in (ends + 1).tolist():
            numbers, counts = np.unique(bucket[start:end], return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                self._turnarounds[number] = self._turnarounds.get(number, 0) + count
            start = end
            known = sorted(self._turnarounds)
            below = np.cumsum([self._turnarounds[number] for number in known])
            for name, share in QUANTILES.items():
                rank = max(int(np.ceil(share * below[-1])), 1)
                exponent_of, step = divmod(known[int(np.searchsorted(below, rank))], 64)
                found[name][end - 1] = np.ldexp(1 + (step + 0.5) / 64, exponent_of - 1)
        return found

    def _sum(self, name: str, values: Any) -> Any:
        return self._carry(name, np.add, values)

    def _largest(self, name: str, values: Any) -> Any:
        return self._carry(name, np.maximum, values)

    def _carry(self, name: str, how: np.ufunc, values: Any) -> Any:
        running = how.accumulate(np.concatenate([[self._totals.get(name, 0.0)], values]))[1:]
        self._totals[name] = float(running[-1])
        return running
