"""The shipped forest as those who use it see it: the worker who decides, the trainer who judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shared.features import Matrix
from shared.tasks import Floats

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


def open_model(body: bytes) -> InferenceSession:
    import onnxruntime  # only here: workers of other policies do without it

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(body, options, providers=["CPUExecutionProvider"])


def predict(model: InferenceSession, features: Matrix) -> Floats:
    """The share of each task that belongs on a GPU."""
    (shares,) = model.run(None, {model.get_inputs()[0].name: features})
    return np.clip(np.asarray(shares, dtype=np.float64)[:, 0], 0.0, 1.0)
