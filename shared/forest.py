"""The shipped forest as those who use it see it: the worker who decides, the trainer who judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shared.features import Matrix, forest_features
from shared.spec import RunSpec
from shared.tasks import Floats, Tasks

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

# So near to 0 or 1 a share is a few trees that doubt, or a sum that was rounded, and no wish to
# split the task. Larger ones cost time where the best share does lie inside (overlapped mode).
NEARLY_WHOLE = 0.1


def open_model(body: bytes) -> InferenceSession:
    import onnxruntime  # only here: workers of other policies do without it

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(body, options, providers=["CPUExecutionProvider"])


def shares(model: InferenceSession, tasks: Tasks, spec: RunSpec) -> Floats:
    """The share of each task to run on a GPU. A task that is nearly whole on one device goes there
    as a whole: the sliver saves nothing, and with it the task would wait in both queues. One that
    is too large for a GPU's memory stays off it as far as the forest says."""
    share = predict(model, forest_features(tasks))
    fits = tasks.memory_required <= spec.cluster.gpu_memory_mb
    share = np.where(share <= NEARLY_WHOLE, 0.0, share)
    return np.where((share >= 1 - NEARLY_WHOLE) & fits, 1.0, share)


def predict(model: InferenceSession, features: Matrix) -> Floats:
    """What the forest says: the share of each task that belongs on a GPU."""
    (shares,) = model.run(None, {model.get_inputs()[0].name: features})
    return np.clip(np.asarray(shares, dtype=np.float64)[:, 0], 0.0, 1.0)
