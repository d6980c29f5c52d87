"""What a trained policy sees when a task arrives: one row of numbers, in the gym and in a worker.

First the task's features, then those of each device in turn (of its type, then of its queue); they
are the ones of `attention_network`. Times are in units of the time scale: the mean seconds of the
workload's tasks on their best device type, or what the policy was trained with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.domain.learning.attention_network import (
    DYNAMIC_FEATURES,
    STATIC_FEATURES,
    TASK_FEATURES,
    DeviceTypes,
    queue_features,
    task_features,
)
from shared.domain.physics import whole_seconds
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Tasks
from shared.domain.times import seconds
from shared.domain.workload import Cursor, generate

Numbers = NDArray[np.float32]

DEVICE_FEATURES = STATIC_FEATURES + DYNAMIC_FEATURES

# The time scale is that of the first tasks of this seed: the same for all runs of a workload.
SCALE_SEED, SCALE_TASKS = 0, 1000

# The entry of an ONNX file's metadata that has the time scale it was trained with.
TIME_SCALE_KEY = "hybrid_time_scale"


@dataclass(frozen=True, slots=True)
class TaskRows:
    """What the observations of tasks have of the task alone."""

    task: Numbers  # (tasks, TASK_FEATURES)
    types: Numbers  # (tasks, device types, STATIC_FEATURES)


class AgentObserver:
    def __init__(self, spec: RunSpec, time_scale: float | None = None) -> None:
        self.spec = spec
        self.time_scale = mean_task_seconds(spec) if time_scale is None else time_scale
        self._types = DeviceTypes.of(spec)
        self.devices = len(self._types.type_of)
        self.width = TASK_FEATURES + self.devices * DEVICE_FEATURES

    def rows(self, tasks: Tasks) -> TaskRows:
        expected = whole_seconds(tasks, self.spec, seconds(tasks, self.spec))
        task, types = task_features(expected, self._types, self.time_scale)
        return TaskRows(task.astype(np.float32), types.astype(np.float32))

    def fill(
        self, out: Numbers, task: Numbers, types: Numbers, queued: Floats, finish: Floats
    ) -> None:
        """Write the observations of one task or of many. `queued` and `finish`: of each device,
        in seconds from now."""
        with np.errstate(invalid="ignore"):  # a task that no device can run
            dynamic = queue_features(queued / self.time_scale, finish / self.time_scale)
        out[..., :TASK_FEATURES] = task
        by_device = out[..., TASK_FEATURES:].reshape(
            *out.shape[:-1], self.devices, DEVICE_FEATURES, copy=False
        )
        by_device[..., :STATIC_FEATURES] = types[..., self._types.type_of, :]
        by_device[..., STATIC_FEATURES:] = np.nan_to_num(dynamic, copy=False)


def mean_task_seconds(spec: RunSpec) -> float:
    """On the best device type of each task."""
    tasks, _ = generate(spec.model_copy(update={"seed": SCALE_SEED}), Cursor(), SCALE_TASKS)
    best = whole_seconds(tasks, spec, seconds(tasks, spec)).min(axis=1)
    best = best[np.isfinite(best)]
    return float(best.mean()) if best.sum() > 0 else 1.0
