"""Small networks in ONNX files, with weights drawn at random."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def write_network(path: Path, inputs: int, devices: int, seed: int = 1) -> Path:
    """A linear score for each device."""
    weights = np.random.default_rng(seed).normal(size=(inputs, devices)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["observation", "weights"], ["scores"])],
        "network",
        [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["rows", inputs])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["rows", devices])],
        [numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
    return path
