"""The shipped forest as the worker uses it to decide and the trainer to evaluate it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shared.domain.learning.features import Matrix, forest_features
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Tasks

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

# A share this close to 0 or 1 is disagreement of a few trees or rounding, not a reason to split the
# task. A larger margin costs time where the best share does lie inside (overlapped mode).
NEARLY_WHOLE = 0.1


def open_model(body: bytes) -> InferenceSession:
    import onnxruntime  # here, because workers of other policies do not need it

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(body, options, providers=["CPUExecutionProvider"])


def shares(model: InferenceSession, tasks: Tasks, spec: RunSpec) -> Floats:
    """The share of each task to run on a GPU. A task that belongs almost completely on one device
    is not split: the small part would save nothing, and the task would wait in both queues. A
    task that does not fit a GPU's memory keeps its predicted share."""
    share = predict(model, forest_features(tasks))
    platform = spec.platform
    memory = [each.memory_mb for each in platform.types if each.accelerator]
    fits = tasks.memory_required <= max(memory, default=0.0)
    share = np.where(share <= NEARLY_WHOLE, 0.0, share)
    return np.where((share >= 1 - NEARLY_WHOLE) & fits, 1.0, share)


def predict(model: InferenceSession, features: Matrix) -> Floats:
    """The predicted share of each task that belongs on a GPU."""
    (shares,) = model.run(None, {model.get_inputs()[0].name: features})
    return np.clip(np.asarray(shares, dtype=np.float64)[:, 0], 0.0, 1.0)
