"""Statistics of a trace, in constant memory: distributions, arrivals, dependencies, columns, load,
and what cannot be concluded from it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from services.lab.traces.trace import Trace
from shared.domain.tasks import Floats, Tasks
from shared.domain.times import seconds

SAMPLE = 100_000  # values kept by a distribution; up to this many it is exact

# The task column that each field of the rules sets.
TASK_COLUMN = {
    "size": "size",
    "seconds": "size",
    "intensity": "compute_intensity",
    "memory": "memory_required",
    "arrival": "arrival_time",
    "width": "width",
    "cpu_width": "width on CPUs",
}

OVERLOAD = 1.0
# Below this hardly any task finds the devices busy.
IDLE = 0.1


class Distribution:
    """Exact minimum and maximum, quantiles from a uniform sample (reservoir sampling)."""

    def __init__(self) -> None:
        self.count = 0
        self._low, self._high = np.inf, -np.inf
        self._kept = np.empty(SAMPLE)
        self._random = np.random.default_rng(0)

    @property
    def constant(self) -> bool:
        return self._low == self._high

    def add(self, values: Floats) -> None:
        values = values[np.isfinite(values)]
        if not len(values):
            return
        self._low = min(self._low, float(values.min()))
        self._high = max(self._high, float(values.max()))
        places = np.arange(self.count, self.count + len(values))
        late = places >= SAMPLE
        places[late] = self._random.integers(0, places[late] + 1)
        chosen = places < SAMPLE
        self._kept[places[chosen]] = values[chosen]
        self.count += len(values)

    def described(self) -> dict[str, float] | None:
        if not self.count:
            return None
        median, p95 = np.quantile(self._kept[: self.count], (0.5, 0.95))
        return {"min": self._low, "median": float(median), "p95": float(p95), "max": self._high}


class Summary:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        names = ("size", "compute_intensity", "memory_required", "width", "gap")
        self._values = {name: Distribution() for name in names}
        types = trace.spec.platform.types if trace.has_times else ()
        self._seconds = {each.name: Distribution() for each in types}
        self._tasks = 0
        self._fit = 0
        self._waiting = self._edges = self._most_parents = 0
        self._first: float | None = None
        self._clock = 0.0
        self._kinds: set[str] = set()

    def add(self, tasks: Tasks) -> None:
        arrivals = tasks.arrival_time
        if self._first is None:
            self._first = self._clock = float(arrivals[0])
        gaps = np.diff(arrivals, prepend=self._clock)
        self._values["gap"].add(gaps if self._tasks else gaps[1:])
        self._clock = float(arrivals[-1])
        for name in ("size", "compute_intensity", "memory_required"):
            self._values[name].add(getattr(tasks, name))
        width = np.ones(len(tasks)) if tasks.width is None else tasks.width.astype(np.float64)
        self._values["width"].add(width)
        if self._trace.has_times:
            times = seconds(tasks, self._trace.spec)
            for column, values in enumerate(self._seconds.values()):
                values.add(times[:, column])
        self._fit += int(self._fits(tasks, width).sum())
        self._tasks += len(tasks)
        if len(self._kinds) < SAMPLE:
            self._kinds.update(tasks.kind or ("",))
        counts = [len(parents) for parents in tasks.parents if parents]
        self._waiting += len(counts)
        self._edges += sum(counts)
        self._most_parents = max([self._most_parents, *counts])

    def _fits(self, tasks: Tasks, width: Floats) -> Any:
        """Which tasks some accelerator has the memory for."""
        memory = [each.memory_mb for each in self._trace.spec.platform.types if each.accelerator]
        return tasks.memory_required <= max(memory, default=0.0) * width

    def described(self) -> dict[str, Any]:
        """The JSON of `hybrid trace inspect`."""
        trace, report = self._trace, self._trace.report
        span = self._clock - (self._first or 0.0)
        load = trace.survey().load
        return {
            "file": str(trace.path),
            "format": trace.format,
            "tasks": self._tasks,
            "columns": self._columns(),
            "distributions": {name: values.described() for name, values in self._values.items()},
            "seconds_on": {name: values.described() for name, values in self._seconds.items()},
            "distributions_exact": self._tasks <= SAMPLE,
            "arrivals": {"span_s": span, "per_s": self._tasks / span if span else None},
            "kinds": len(self._kinds - {""}),
            "fit_accelerator_memory": self._fit,
            "recorded_on_cpu": trace.recorded_on_cpu,
            "dependencies": {
                "waiting_tasks": self._waiting,
                "edges": self._edges,
                "most_parents": self._most_parents,
                "window": trace.survey().links.window,
            },
            "load": None if load is None else asdict(load),
            "warnings": self._warnings(),
            "skipped": dict(report.skipped.most_common()),
            "adjusted": dict(report.adjusted.most_common()),
            "notes": report.notes,
        }

    def _warnings(self) -> list[str]:
        return [*self._inconclusive(), *load_warnings(self._trace)]

    def _inconclusive(self) -> list[str]:
        """What the trace cannot show, since its tasks do not differ in it or were not measured."""
        platform, same = self._trace.spec.platform, self._same
        if self._tasks < 2:
            return ["one task: nothing can be concluded about schedulers"]
        messages = []
        if not len(platform.cpus) or not len(platform.accelerators):
            messages.append(
                f"the platform has no {'accelerator' if len(platform.cpus) else 'CPU'}: schedulers "
                "that only choose the accelerator's share of a task all do the same"
            )
        if platform.measured is not None and len(self._kinds) == 1:
            messages.append(
                "all tasks are of one kind: they gain the same from a device type; schedulers can "
                "only differ by how they share the devices out, not by which task they send where"
            )
        if platform.measured is None and same("compute_intensity"):
            same_memory = " and memory" * same("memory_required")
            messages.append(
                f"all tasks have the same intensity{same_memory}: "
                "an accelerator speeds all of them up alike; schedulers can only differ by how "
                "they share the devices out, not by which task they send where"
            )
        elif same("memory_required"):
            messages.append(
                "all tasks have the same memory: nothing can be concluded about schedulers that "
                "weigh transfers or the memory of accelerators"
            )
        if same("size") and len(self._kinds) == 1:
            messages.append(
                "all tasks have the same size: nothing can be concluded about short tasks that "
                "wait behind long ones"
            )
        if self._clock == self._first and not self._edges:
            messages.append(
                "all tasks arrive at once: makespan, energy and cost can be compared, waiting only "
                "shows the order of the file"
            )
        return messages + self._assumed_times()

    def _assumed_times(self) -> list[str]:
        """A warning about times that were recorded on one device and come from the formula on all
        others."""
        types = self._trace.spec.platform.types
        mixed = len({each.accelerator for each in types}) == 2
        if self._trace.rules.seconds is None or self._trace.spec.platform.measured or not mixed:
            return []
        on_cpu = self._trace.recorded_on_cpu
        return [
            f"{count:,} of {self._tasks:,} tasks were recorded on {recorded} only: what they would "
            f"take on {other} is the formula's assumption"
            for count, recorded, other in (
                (on_cpu, "a CPU", "an accelerator"),
                (self._tasks - on_cpu, "an accelerator", "a CPU"),
            )
            if count
        ]

    def _same(self, name: str) -> bool:
        return self._values[name].constant

    def _columns(self) -> list[dict[str, Any]]:
        trace = self._trace
        columns = []
        for name, rule in trace.rules.fields().items():
            if name not in TASK_COLUMN or (name == "cpu_width" and not rule.note):
                continue
            used = trace.substituted[name]
            on = f" (seconds on {trace.rules.recorded_on})" if name == "seconds" else ""
            columns.append(
                {
                    "task": TASK_COLUMN[name],
                    "from": rule.formula() + on,
                    "proxy": rule.proxy,
                    "note": rule.note,
                    "not_given": used.otherwise,
                    "limited": used.limited,
                }
            )
        if trace.rules.kind:
            columns.append(
                {"task": "kind", "from": trace.rules.kind, "proxy": False, "note": "",
                 "not_given": 0, "limited": 0}
            )  # fmt: skip
        return columns


def load_warnings(trace: Trace) -> list[str]:
    load = trace.survey().load
    if not trace.has_times:
        return [
            "the sizes are steps, not time: choose a platform with measured times of these kinds "
            "(--platform) to see the load"
        ]
    if load is None:
        return []
    if max(load.cluster, load.busiest) < IDLE:
        return [
            f"the offered load is {load.cluster:.3g}: hardly any task waits, so schedulers only "
            "differ in execution time, energy and cost; `replay --load 0.8` shortens the time "
            "between arrivals, or choose a smaller platform"
        ]
    if max(load.cluster, load.busiest) <= OVERLOAD:
        return []
    if load.cluster > OVERLOAD:
        return [
            f"the offered load is {load.cluster:.3g}: more arrives than the platform can do, so "
            "queues grow to the end and waiting only shows how long the trace is; `replay --load "
            "0.8` stretches the arrivals, or choose a larger platform"
        ]
    return [
        f"nine of ten tasks arrive within {load.busiest_span_s:,.4g} s, where the offered load is "
        f"{load.busiest:.3g}: queues grow all that time, although on average the load is "
        f"{load.cluster:.3g}"
    ]
