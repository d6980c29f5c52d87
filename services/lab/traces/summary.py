"""Statistics of a trace, in constant memory: distributions, arrivals, dependencies, columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from services.lab.traces.trace import Trace
from shared.domain.physics import cpu_seconds
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Tasks

SAMPLE = 100_000  # values kept by a distribution; up to this many it is exact

# The task column that each field of the rules sets.
TASK_COLUMN = {
    "size": "size",
    "seconds": "size",
    "intensity": "compute_intensity",
    "memory": "memory_required",
    "arrival": "arrival_time",
}


class Distribution:
    """Exact minimum and maximum, quantiles from a uniform sample (reservoir sampling)."""

    def __init__(self) -> None:
        self.count = 0
        self._low, self._high = np.inf, -np.inf
        self._kept = np.empty(SAMPLE)
        self._random = np.random.default_rng(0)

    def add(self, values: Floats) -> None:
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
        self._spec = RunSpec.parse({"physics": trace.physics.model_dump()})
        self._values = {
            name: Distribution()
            for name in ("size", "compute_intensity", "memory_required", "cpu_seconds", "gap")
        }
        self._tasks = 0
        self._waiting = self._edges = self._most_parents = 0
        self._first: float | None = None
        self._clock = 0.0

    def add(self, tasks: Tasks) -> None:
        arrivals = tasks.arrival_time
        if self._first is None:
            self._first = self._clock = float(arrivals[0])
        gaps = np.diff(arrivals, prepend=self._clock)
        self._values["gap"].add(gaps if self._tasks else gaps[1:])
        self._clock = float(arrivals[-1])
        self._values["size"].add(tasks.size)
        self._values["compute_intensity"].add(tasks.compute_intensity)
        self._values["memory_required"].add(tasks.memory_required)
        self._values["cpu_seconds"].add(cpu_seconds(tasks, self._spec))
        self._tasks += len(tasks)
        counts = [len(parents) for parents in tasks.parents if parents]
        self._waiting += len(counts)
        self._edges += sum(counts)
        self._most_parents = max([self._most_parents, *counts])

    def described(self) -> dict[str, Any]:
        """The JSON of `hybrid trace inspect`."""
        trace, report = self._trace, self._trace.report
        span = self._clock - (self._first or 0.0)
        return {
            "file": str(trace.path),
            "format": trace.format,
            "tasks": self._tasks,
            "columns": self._columns(),
            "distributions": {name: values.described() for name, values in self._values.items()},
            "distributions_exact": self._tasks <= SAMPLE,
            "arrivals": {"span_s": span, "per_s": self._tasks / span if span else None},
            "dependencies": {
                "waiting_tasks": self._waiting,
                "edges": self._edges,
                "most_parents": self._most_parents,
            },
            "skipped": dict(report.skipped.most_common()),
            "adjusted": dict(report.adjusted.most_common()),
            "notes": report.notes,
        }

    def _columns(self) -> list[dict[str, Any]]:
        columns = []
        for name, rule in self._trace.rules.fields().items():
            used = self._trace.translator.substituted[name]
            columns.append(
                {
                    "task": TASK_COLUMN[name],
                    "from": rule.formula() + (" (inverted physics)" * (name == "seconds")),
                    "proxy": rule.proxy,
                    "note": rule.note,
                    "not_given": used.otherwise,
                    "limited": used.limited,
                }
            )
        return columns
