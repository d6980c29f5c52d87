"""The network of `attention_agent` in numpy: what it sees, and its score for each device.

One token for the task and one for each device, one layer of attention from every device to all
tokens, and one number per device: the correction of a rule's score. Sums and weighted means over
devices do not depend on their number or order, so one model serves any cluster.

    tokens      x = relu(features W + b)
    weights     p = (1 + s)^2 + 1, divided by its sum, with s = (x Q) x'
    correction  down relu((x + p x V) W + b)

The weights are the Taylor softmax (de Brebisson, Vincent: "An exploration of softmax alternatives
belonging to the spherical loss family", 2016): it needs no `exp`, which differs between CPUs. Times
are seen as c / (c + seconds) for some constants c, in units of the model's time scale: 1 for
nothing, 0 for never.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shared.domain.learning.objective import charge
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Integers

Array = NDArray[np.floating]

SHORT, MEDIUM, LONG = 0.25, 1.0, 4.0  # time scales at which the seconds of a task are seen
QUEUES = np.array([0.5, 2.0, 8.0])  # and those at which queues are
FINISH = 2.0

TASK_FEATURES = 4
STATIC_FEATURES = 7
DYNAMIC_FEATURES = len(QUEUES) + 2

# The shapes of a model's tensors, for a width of `d` and a hidden layer of `h`.
SHAPES = {
    "task": ("task_features", "d"),
    "task_bias": ("d",),
    "static": ("static_features", "d"),
    "static_bias": ("d",),
    "dynamic": ("dynamic_features", "d"),
    "query": ("d", "d"),
    "value": ("d", "d"),
    "up": ("d", "h"),
    "up_bias": ("h",),
    "down": ("h",),
}


@dataclass(frozen=True, slots=True)
class DeviceTypes:
    """What the agent knows of the cluster, by device type."""

    type_of: Integers  # of each device
    accelerator: Floats  # 1: yes
    count: Floats
    running_price: Floats  # what a second of execution costs besides the time itself
    scarcity_price: Floats  # what the base rule adds for keeping others waiting

    @classmethod
    def of(cls, spec: RunSpec, running_price: Floats | None = None) -> DeviceTypes:
        """Without a price, that of the run's objective."""
        if running_price is None or len(running_price) != len(spec.platform.types):
            running_price = charge(spec) / spec.objective.turnaround
        platform, rule = spec.platform, spec.learning.attention
        accelerator = np.array([kind.accelerator for kind in platform.types], np.float64)
        return cls(
            type_of=platform.type_of,
            accelerator=accelerator,
            count=platform.counts.astype(np.float64),
            running_price=running_price,
            scarcity_price=np.where(accelerator > 0, rule.accelerator_price, rule.cpu_price),
        )

    def shrunk(self, most: int) -> DeviceTypes:
        """The same with at most about that many devices, some of each type."""
        if len(self.type_of) <= most:
            return self
        devices = np.bincount(self.type_of)
        few = np.maximum(np.rint(devices * most / len(self.type_of)), np.minimum(devices, 1))
        return replace(self, type_of=np.repeat(np.arange(len(few)), few.astype(np.int64)))

    @property
    def score_per_second(self) -> Floats:
        """What the base rule adds for a second of execution, besides the second itself."""
        return self.running_price + self.scarcity_price


class AttentionNetwork:
    """The weights of a model, ready to use."""

    def __init__(self, tensors: Mapping[str, Array], dtype: type[np.floating] = np.float64) -> None:
        """Raises ValueError if a tensor is missing or does not fit the others."""
        check_shapes(tensors)
        self.time_scale = float(tensors["time_scale"])
        # That it was trained with: the objective of a run may have changed since.
        price = tensors.get("running_price")
        self.running_price = None if price is None else np.asarray(price, np.float64)
        self.width = len(tensors["task_bias"])
        self._dtype = dtype
        self._tensors = {name: np.asarray(tensors[name], dtype) for name in SHAPES}
        # The usual scale of attention, and both products of the tokens at once.
        query = self._tensors["query"] * dtype(1 / np.sqrt(self.width))
        self._query_value = np.concatenate([query, self._tensors["value"]], axis=1)

    def embed(self, seconds: Floats, types: DeviceTypes) -> tuple[Array, Array]:
        """What tokens have of the task alone: (tasks, width) of the task's token, and
        (tasks, types, width) of devices. `seconds`: of each task on each type."""
        task, static = task_features(seconds, types, self.time_scale)
        weights, dtype = self._tensors, self._dtype
        of_task = product(task.astype(dtype), weights["task"]) + weights["task_bias"]
        of_types = product(static.astype(dtype), weights["static"]) + weights["static_bias"]
        return np.maximum(of_task, 0), of_types

    def correction(self, task: Array, devices: Array, queued: Floats, finish: Floats) -> Array:
        """The correction for each device in seconds, of one task or of one per row. `devices`:
        the embedding of each device's type; `finish`: from now."""
        weights, width = self._tensors, self.width
        dynamic = queue_features(queued / self.time_scale, finish / self.time_scale)
        dynamic = dynamic.astype(self._dtype, copy=False)
        tokens = np.empty((*devices.shape[:-2], devices.shape[-2] + 1, width), self._dtype)
        tokens[..., 0, :] = task
        np.maximum(devices + flat_product(dynamic, weights["dynamic"]), 0, out=tokens[..., 1:, :])
        query_value = flat_product(tokens, self._query_value)
        attention = query_value[..., 1:, :width] @ tokens.swapaxes(-1, -2)
        attention += 1
        attention *= attention
        attention += 1
        attention /= attention.sum(axis=-1, keepdims=True)
        mixed = attention @ query_value[..., width:]
        mixed += tokens[..., 1:, :]
        hidden = flat_product(mixed, weights["up"])
        hidden += weights["up_bias"]
        np.maximum(hidden, 0, out=hidden)
        correction = flat_product(hidden, weights["down"])
        correction *= self.time_scale
        return correction


def product(features: Array, weights: Array) -> Array:
    """`features @ weights`, whose last bit would depend on how many tasks there are."""
    total: Array = features[..., :1] * weights[0]
    for number in range(1, len(weights)):
        total += features[..., number, None] * weights[number]
    return total


def flat_product(features: Array, weights: Array) -> Array:
    """`features @ weights` as one product of matrices: numpy computes one for each row of a stack,
    which for small ones takes twice as long."""
    if features.ndim == 2:
        return np.asarray(features @ weights)
    rows = features.reshape(-1, features.shape[-1])
    return np.asarray((rows @ weights).reshape(*features.shape[:-1], *weights.shape[1:]))


def task_features(seconds: Floats, types: DeviceTypes, time_scale: float) -> tuple[Floats, Floats]:
    """(tasks, TASK_FEATURES) and (tasks, types, STATIC_FEATURES); a type that cannot run a task has
    infinite seconds."""
    scaled = seconds / time_scale
    possible = np.isfinite(scaled)
    best = scaled.min(axis=1)
    worst = np.where(possible, scaled, 0.0).max(axis=1)
    best = np.where(np.isfinite(best), best, 0.0)
    equal = np.divide(best, worst, out=np.ones_like(best), where=worst > 0)
    task = np.stack([*(c / (c + best) for c in (SHORT, MEDIUM, LONG)), equal], axis=-1)
    fastest = np.divide(best[:, None], scaled, out=np.ones_like(scaled), where=scaled > 0)
    price = types.running_price / (1.0 + types.running_price)
    described = (types.accelerator, 1.0 / types.count, price)
    static = np.stack(
        [
            *(c / (c + scaled) for c in (SHORT, MEDIUM, LONG)),
            np.where(possible, fastest, 0.0),
            *(np.broadcast_to(column, scaled.shape) for column in described),
        ],
        axis=-1,
    )
    return task, static


def queue_features(queued: Floats, finish: Floats) -> Floats:
    """(..., devices, DYNAMIC_FEATURES); `finish`: from now, infinite where the task cannot run."""
    features = np.empty((*queued.shape, DYNAMIC_FEATURES))
    features[..., :-2] = QUEUES / (QUEUES + queued[..., None])
    features[..., -2] = FINISH / (FINISH + finish)
    features[..., -1] = (1e-9 + finish.min(axis=-1, keepdims=True)) / (1e-9 + finish)
    return features


def check_shapes(tensors: Mapping[str, Array]) -> None:
    missing = [name for name in (*SHAPES, "time_scale") if name not in tensors]
    if missing:
        raise ValueError(f"no model of attention_agent: {', '.join(missing)} missing")
    sizes = {
        "task_features": TASK_FEATURES,
        "static_features": STATIC_FEATURES,
        "dynamic_features": DYNAMIC_FEATURES,
        "d": len(tensors["task_bias"]),
        "h": len(tensors["up_bias"]),
    }
    for name, shape in SHAPES.items():
        expected = tuple(sizes[size] for size in shape)
        if tensors[name].shape != expected:
            raise ValueError(f"{name} has shape {tensors[name].shape}, not {expected}")
    if not float(tensors["time_scale"]) > 0:
        raise ValueError(f"time_scale must be above 0, not {tensors['time_scale']}")


def guarded(finish: Floats, earliest: Floats, guard: float) -> NDArray[np.bool_]:
    """Where the choice would finish too late, from now, compared with the earliest."""
    late: NDArray[np.bool_] = finish > (1.0 + guard) * earliest
    return late
