"""Networks from files: what is wrong with one is said, and before the arena starts if possible."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from services.scheduler import policy as policies
from services.scheduler.cluster_worker import ClusterCopy, place
from services.scheduler.onnx_policy import OnnxPolicy, load_onnx
from services.scheduler.policy import PolicyError
from shared.domain.learning.agent_observation import TIME_SCALE_KEY, AgentObserver
from shared.domain.spec import RunSpec
from shared.domain.workload import Cursor, generate
from shared.messages import batches
from shared.messages.batches import Batch
from shared.messages.envelope import Envelope
from tests.unit.clients.networks import write_network

SPEC = RunSpec.parse({})
WIDTH = AgentObserver(SPEC).width


def decide(policy: OnnxPolicy, spec: RunSpec = SPEC) -> Batch:
    tasks, _ = generate(spec, Cursor(), 10)
    batch = Batch(Envelope("tasks", "r", 0, 0.0), batches.task_rows(tasks))
    decided, _ = place(batch, policy, ClusterCopy.new(spec), spec, policy.prepare(tasks, spec))
    return decided


def constant(path: Path, output: np.ndarray) -> Path:
    """A network that gives this answer to everything."""
    kind = helper.np_dtype_to_tensor_dtype(output.dtype)
    graph = helper.make_graph(
        [helper.make_node("Identity", ["answer"], ["output"])],
        "network",
        [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["rows", WIDTH])],
        [helper.make_tensor_value_info("output", kind, output.shape)],
        [numpy_helper.from_array(output, "answer")],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


def test_the_highest_score_is_chosen_and_shown_as_the_lowest(tmp_path: Path) -> None:
    scores = np.array([[0, 3, 1, 2, -1]], np.float32)
    rows = decide(load_onnx(constant(tmp_path / "fixed.onnx", scores))).rows
    assert rows.column("device").to_pylist() == [1] * 10
    assert rows.column("scores").to_pylist()[0] == [0, -3, -1, -2, 1]


def test_an_integer_is_the_device(tmp_path: Path) -> None:
    rows = decide(load_onnx(constant(tmp_path / "fixed.onnx", np.array([2])))).rows
    assert rows.column("device").to_pylist() == [2] * 10


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (np.zeros((1, 3), np.float32), "3 scores for 5 devices"),
        (np.full((1, 5), np.nan, np.float32), "not a number"),
        (np.array([7]), "device 7"),
    ],
)
def test_an_impossible_answer_is_an_error_of_the_policy(
    output: np.ndarray, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match=reason):
        decide(load_onnx(constant(tmp_path / "wrong.onnx", output)))


def test_a_network_for_another_number_of_devices_says_so(tmp_path: Path) -> None:
    policy = load_onnx(write_network(tmp_path / "small.onnx", 4 + 2 * 12, 2))
    with pytest.raises(PolicyError, match=r"takes 28 numbers.*5 devices has 64"):
        decide(policy)


def test_times_are_seen_in_the_unit_of_training(tmp_path: Path) -> None:
    """Stored in the file: with another one the same network has other scores."""
    decided = []
    for scale in ("0.001", "1000"):
        file = write_network(tmp_path / f"scale_{scale[-1]}.onnx", WIDTH, 5)
        model = onnx.load(file)
        helper.set_model_props(model, {TIME_SCALE_KEY: scale})
        onnx.save(model, file)
        rows = decide(load_onnx(file)).rows
        decided.append(rows.column("scores").to_pylist())
    assert decided[0] != decided[1]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("broken.onnx", b"no network", "cannot be opened as ONNX"),
        ("Bad Name.onnx", b"", "rename the file"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    name: str, content: bytes, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(PolicyError, match=reason):
        policies.load(str(file))
    with pytest.raises(PolicyError, match="no such file"):
        policies.load(str(tmp_path / "absent.onnx"))
