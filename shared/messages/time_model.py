"""The shipped model of `predictive`: workers decide with it, and the trainer continues from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shared.domain.learning.features import Matrix
from shared.domain.learning.time_lines import TimeLines, kinds_of, numbers_of
from shared.domain.physics import whole_seconds
from shared.domain.portable_math import exp, log
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Integers, Tasks, take
from shared.domain.times import seconds
from shared.messages.forest_model import open_model

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

# Beyond these logarithms a prediction is an error of the model, not a time.
LEAST_LOG, MOST_LOG = -30.0, 30.0
# Farther than a factor of three (e^1.1) outside the training range, use the platform's times.
EXTRAPOLATION_LIMIT = 1.1


@dataclass(frozen=True, slots=True)
class Examples:
    """Pre-training tasks with their expected times."""

    numbers: Floats  # tasks x 3
    kind: Integers  # rows of the model's kinds
    log_seconds: Floats  # tasks x types; infinite: the type cannot run it

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(frozen=True, slots=True)
class TimeModel:
    """Seconds on each device type, how wrong they usually are, and the prices of device time."""

    lines: TimeLines
    trees: bytes  # ONNX: log seconds minus those of the lines, one column per type
    spread: Floats  # by type: standard deviation of log seconds
    prices: Floats
    price_steps: Floats
    scale: float  # seconds of an average task
    examples: Examples
    # Types x 3: the training range of log size, intensity and log memory.
    low: Floats
    high: Floats
    off: Floats  # by type: median of log(seconds / expected seconds)
    # The longest task and the longest queue with which the prices were found, in seconds.
    longest: float = np.inf
    most_queued: float = np.inf
    session: InferenceSession | None = None

    def pack(self) -> bytes:
        from safetensors.numpy import save

        lines, examples = self.lines, self.examples
        kinds = json.dumps(lines.kinds).encode()
        arrays = {
            "kinds": np.frombuffer(kinds, np.uint8),
            "trees": np.frombuffer(self.trees, np.uint8),
            "centre": np.array([lines.centre]),
            "line": lines.line,
            "line_of_kind": lines.of_kind,
            "line_of_both": lines.of_both,
            "counts": lines.counts,
            "spread": self.spread,
            "prices": self.prices,
            "price_steps": self.price_steps,
            "scale": np.array([self.scale]),
            "low": self.low,
            "high": self.high,
            "off": self.off,
            "longest": np.array([self.longest]),
            "most_queued": np.array([self.most_queued]),
            "example_numbers": examples.numbers,
            "example_kind": examples.kind,
            "example_log_seconds": examples.log_seconds,
        }
        return bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))

    @classmethod
    def open(cls, body: bytes) -> TimeModel:
        from safetensors.numpy import load

        arrays = load(body)
        lines = TimeLines(
            tuple(json.loads(arrays["kinds"].tobytes())),
            float(arrays["centre"][0]),
            arrays["line"],
            arrays["line_of_kind"],
            arrays["line_of_both"],
            arrays["counts"],
        )
        examples = Examples(
            arrays["example_numbers"], arrays["example_kind"], arrays["example_log_seconds"]
        )
        trees, unbounded = arrays["trees"].tobytes(), np.full((len(arrays["line"]), 3), np.inf)
        return cls(
            lines,
            trees,
            arrays["spread"],
            arrays["prices"],
            arrays["price_steps"],
            float(arrays["scale"][0]),
            examples,
            # Missing in models of older versions:
            arrays.get("low", -unbounded),
            arrays.get("high", unbounded),
            arrays.get("off", np.zeros(len(unbounded))),
            float(arrays["longest"][0]) if "longest" in arrays else np.inf,
            float(arrays["most_queued"][0]) if "most_queued" in arrays else np.inf,
            open_model(trees),
        )

    def log_seconds(self, numbers: Floats, kind: Integers) -> Floats:
        """The logarithm of the seconds of each task (row) on each device type (column)."""
        assert self.session is not None
        parts = self.lines.kind_parts(numbers, kind)
        by_line = self.lines.log_seconds(numbers, parts)
        features = tree_features(numbers, parts, by_line)
        (rest,) = self.session.run(None, {"features": features})
        return np.asarray(by_line + rest)

    def seconds(self, tasks: Tasks, spec: RunSpec) -> Floats:
        """Expected seconds of each task (row) on each device type (column), as `ClusterView.expect`
        takes them; infinite where a type cannot run a task, which the platform says."""
        numbers = numbers_of(tasks)
        kind = self.lines.numbers_of_kinds(kinds_of(tasks))
        log_times = self.log_seconds(numbers, kind)
        self._extend(log_times, tasks, numbers, spec)
        log_times += self.spread * self.spread / 2
        times = exp(np.clip(log_times, LEAST_LOG, MOST_LOG))
        if spec.platform.measured is not None or tasks.width is not None:
            times[np.isinf(seconds(tasks, spec))] = np.inf
        return times

    def _extend(self, log_times: Floats, tasks: Tasks, numbers: Floats, spec: RunSpec) -> None:
        """Replace the times of tasks far outside the training range by the platform's expected
        times, corrected by `off`."""
        for type, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            near = (numbers >= low - EXTRAPOLATION_LIMIT) & (numbers <= high + EXTRAPOLATION_LIMIT)
            far = np.flatnonzero(~near.all(axis=1))
            if len(far):
                expected = seconds(take(tasks, far), spec)[:, type]
                known = np.isfinite(expected) & (expected > 0)
                log_times[far[known], type] = log(expected[known]) + self.off[type]

    def whole_seconds(self, tasks: Tasks, spec: RunSpec) -> Floats:
        """The same with paging, and infinite where a task does not fit the memory."""
        return whole_seconds(tasks, spec, self.seconds(tasks, spec))

    def uncertainty(self, tasks: Tasks) -> Floats | None:
        """How much of the logarithm is unknown because the kind was run on the type so rarely."""
        if len(self.lines.kinds) < 2:
            return None
        kind = self.lines.numbers_of_kinds(kinds_of(tasks))
        return self.lines.kind_spread() / np.sqrt(1.0 + self.lines.counts[:, kind].T)


def tree_features(numbers: Floats, kind_parts: Floats, by_line: Floats) -> Matrix:
    """What the trees see: a task's three numbers, and for each type what its kind adds and how much
    memory it has for its time. (Where moving the memory takes long, the line is wrong most.)"""
    return np.column_stack([numbers, kind_parts, numbers[:, 2:] - by_line]).astype(np.float32)


def features_of(number: int, types: int) -> list[int]:
    """The columns that the trees of a type look at."""
    return [0, 1, 2, 3 + number, 3 + types + number]
