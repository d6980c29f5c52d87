"""No library of a service reports to its makers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

OPEN_A_MODEL = """
from services.trainer import training_loop
import onnxruntime
from onnx import TensorProto, helper

x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "model", [x], [y])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
"""


def test_onnx_runtime_leaves_no_identifier_of_the_machine(tmp_path: Path) -> None:
    """It writes one, and a queue of what to send, where its telemetry is on."""
    # No other variables: CI, for one, turns its telemetry off.
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    root = Path(__file__).parents[4]
    subprocess.run([sys.executable, "-c", OPEN_A_MODEL], cwd=root, env=environment, check=True)
    assert not (tmp_path / ".cache" / "Microsoft").exists()
