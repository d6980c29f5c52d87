"""An exported model predicts like the shipped one, and reading a shipped one runs no code."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import onnx
import pytest
import torch
from onnx import helper
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from services.cli.models import export
from services.cli.models.export import ExportError
from services.trainer.learners import hybrid_ml as forest
from services.trainer.learners.hybrid_ml import LabelledTasks
from services.trainer.learners.rl_agent import Dqn, DuelingNetwork
from shared.domain.learning.features import Matrix, agent_state, forest_features
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Tasks
from shared.domain.workload import Cursor, generate
from shared.errors import ModelRefused


def spec_of(preset: str = "hpc", split: str = "serial", trees: int = 20) -> RunSpec:
    return RunSpec.parse(
        {
            "seed": 11,
            "workload": {"preset": preset},
            "physics": {"split": split},
            "learning": {"forest": {"trees": trees}, "agent": {"hidden": 16}},
        }
    )


def tasks_of(spec: RunSpec, seed: int, count: int) -> Tasks:
    return generate(spec.model_copy(update={"seed": seed}), Cursor(), count)[0]


def fitted(spec: RunSpec, count: int = 500) -> bytes:
    return forest.fit(forest.label(tasks_of(spec, 1, count), spec), spec)


def shipped_prediction(body: bytes, features: Matrix) -> Floats:
    (shares,) = forest.open_model(body).run(None, {"X": features})
    return np.asarray(shares, dtype=np.float64)[:, 0]


def exported(body: bytes, folder: Path) -> Pipeline:
    file = folder / "forest.pkl"
    export.write("hybrid_ml", body, file)
    pipeline = joblib.load(file)
    assert isinstance(pipeline, Pipeline)
    return pipeline


@pytest.mark.parametrize("preset", ["hpc", "documented", "cpu_friendly"])
@pytest.mark.parametrize("split", ["serial", "overlapped"])
def test_an_exported_forest_predicts_what_the_shipped_one_does(
    preset: str, split: str, tmp_path: Path
) -> None:
    spec = spec_of(preset, split)
    body = fitted(spec)
    pipeline = exported(body, tmp_path)
    for seed in (1, 2):  # tasks it learned from, and others
        features = forest_features(tasks_of(spec, seed, 5000))
        expected = shipped_prediction(body, features)
        for given in (features, features.astype(np.float64)):
            np.testing.assert_allclose(pipeline.predict(given), expected, rtol=0, atol=1e-5)


def test_an_exported_forest_takes_the_same_path_to_the_last_bit(tmp_path: Path) -> None:
    """Tasks on both sides of a threshold, one representable number apart."""
    spec = spec_of("hpc", "overlapped", trees=3)
    body = fitted(spec)
    pipeline = exported(body, tmp_path)
    scaler, grown = pipeline.steps[0][1], pipeline.steps[1][1].estimators_[0].tree_
    inner = np.flatnonzero(grown.children_left >= 0)
    feature, threshold = grown.feature[inner], grown.threshold[inner]
    at = threshold * scaler.scale_[feature] + scaler.mean_[feature]
    features = np.tile(forest_features(tasks_of(spec, 5, 1)), (len(inner), 1))
    features[np.arange(len(inner)), feature] = at
    near = [features]
    for direction in (-np.inf, np.inf):
        moved = features
        for _ in range(3):
            moved = np.nextafter(moved, np.float32(direction))
            near.append(moved)
    every = np.concatenate(near)
    np.testing.assert_allclose(
        pipeline.predict(every), shipped_prediction(body, every), rtol=0, atol=1e-5
    )


def test_an_exported_forest_is_plain_scikit_learn(tmp_path: Path) -> None:
    pipeline = exported(fitted(spec_of(trees=7)), tmp_path)
    (_, scaler), (_, trees) = pipeline.steps
    assert type(scaler) is StandardScaler
    assert type(trees) is RandomForestRegressor
    assert len(trees.estimators_) == trees.n_estimators == 7
    assert pipeline.n_features_in_ == 5
    assert all(tree.get_depth() >= 1 for tree in trees.estimators_)


def test_an_exported_forest_has_the_trees_that_were_fitted(tmp_path: Path) -> None:
    """Against scikit-learn's own, fitted on the same tasks with the same seed."""
    spec = spec_of(trees=4)
    known = tasks_of(spec, 1, 300)
    labelled = forest.label(known, spec)
    features = StandardScaler().fit_transform(forest_features(known))
    own = RandomForestRegressor(4, random_state=11).fit(features, labelled.share)
    pipeline = exported(forest.fit(labelled, spec), tmp_path)
    for expected, tree in zip(own.estimators_, pipeline.steps[1][1].estimators_, strict=True):
        assert tree.get_depth() == expected.get_depth()
        assert tree.get_n_leaves() == expected.get_n_leaves()
        for name in ("children_left", "children_right", "feature"):
            assert (getattr(tree.tree_, name) == getattr(expected.tree_, name)).all()
        leaf = expected.tree_.children_left == -1
        np.testing.assert_allclose(tree.tree_.value[leaf], expected.tree_.value[leaf], atol=1e-6)
    scaler = pipeline.steps[0][1]
    np.testing.assert_allclose(scaler.mean_, forest_features(known).mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(scaler.var_, forest_features(known).var(axis=0), rtol=1e-4)


def test_a_forest_without_branches_is_exported_too(tmp_path: Path) -> None:
    spec = spec_of(trees=3)
    known = tasks_of(spec, 1, 50)
    body = forest.fit(LabelledTasks(known, np.full(50, 0.25)), spec)
    features = forest_features(tasks_of(spec, 2, 20))
    assert exported(body, tmp_path).predict(features) == pytest.approx([0.25] * 20)


def test_an_exported_agent_is_the_networks_state(tmp_path: Path) -> None:
    spec = spec_of()
    agent = Dqn(spec, tasks_of(spec, 1, 200))
    agent.pretrain(tasks_of(spec, 1, 100))
    file = tmp_path / "agent.pth"
    export.write("rl_agent", agent.weights(), file)
    loaded = torch.load(file, weights_only=True)
    assert float(loaded["scale"][0]) == agent.scale
    network = DuelingNetwork(len(agent.transitions.actions), 16)
    network.load_state_dict({key: loaded[key] for key in network.state_dict()})
    state = torch.from_numpy(agent_state(tasks_of(spec, 3, 500)))
    with torch.no_grad():
        assert torch.equal(network(state), agent.policy(state))


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("body", [b"", b"\x00", b"no model at all", None])
@pytest.mark.parametrize(("name", "file"), [("hybrid_ml", "model.pkl"), ("rl_agent", "model.pth")])
def test_a_body_that_is_no_model_is_refused_and_a_pickle_is_not_unpickled(
    name: str, file: str, body: bytes | None, tmp_path: Path
) -> None:
    pickled = pickle.dumps(Trap(tmp_path / "sprung"))
    with pytest.raises(ModelRefused):
        export.write(name, pickled if body is None else body, tmp_path / file)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["hybrid_ml", "rl_agent"])
def test_exporting_unpickles_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(trees=3)
    body = fitted(spec) if name == "hybrid_ml" else Dqn(spec, tasks_of(spec, 1, 100)).weights()

    def never(*args: Any, **options: Any) -> None:
        raise AssertionError("unpickled")

    for loader in ("pickle.load", "pickle.loads", "pickle.Unpickler", "joblib.load", "torch.load"):
        monkeypatch.setattr(loader, never)
    file = tmp_path / f"model{export.suffix(name, 'safetensors')}"
    export.write(name, body, file)
    assert file.stat().st_size > 0


def forged(**attributes: Any) -> bytes:
    """A scaler of two features and one tree, x0 <= 1 ? 0.5 : 0.75, with something changed."""
    tree: dict[str, Any] = {
        "n_targets": 1, "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_values": [1.0, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0], "target_nodeids": [1, 2],
        "target_ids": [0, 0], "target_weights": [0.5, 0.75], **attributes,
    }  # fmt: skip
    given = {key: value for key, value in tree.items() if value is not None}
    domain = "ai.onnx.ml"
    scaler = helper.make_node(
        "Scaler", ["X"], ["Y"], domain=domain, offset=[10.0, 0.0], scale=[0.5, 1.0]
    )
    ensemble = helper.make_node("TreeEnsembleRegressor", ["Y"], ["Z"], domain=domain, **given)
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, width])
        for name, width in (("X", 2), ("Z", 1))
    ]
    graph = helper.make_graph([scaler, ensemble], "forged", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 3)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def test_a_tree_made_by_hand() -> None:
    """(x - 10) / 2 <= 1 is x <= 12."""
    features = np.array([[-5, 3], [12, 3], [12.1, 3], [99, 0]], dtype=np.float32)
    assert export.pipeline(forged()).predict(features).tolist() == [0.5, 0.5, 0.75, 0.75]


@pytest.mark.parametrize(("function", "over"), [("SUM", 2), ("AVERAGE", 1)])
def test_trees_are_summed_or_averaged_as_the_graph_says(function: str, over: int) -> None:
    """x0 <= 1 ? 0.5 : 0.75, and always 0.25; a sum has the division by two in its leaves."""
    body = forged(
        nodes_treeids=[0, 0, 0, 7], nodes_nodeids=[0, 1, 2, 0], nodes_featureids=[0, 0, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF", "LEAF"], nodes_values=[1.0, 0.0, 0.0, 0.0],
        nodes_truenodeids=[1, 0, 0, 0], nodes_falsenodeids=[2, 0, 0, 0],
        target_treeids=[0, 7, 0], target_nodeids=[2, 0, 1], target_ids=[0, 0, 0],
        target_weights=[0.75 / over, 0.25 / over, 0.5 / over], aggregate_function=function,
    )  # fmt: skip
    features = np.array([[12, 3], [13, 3]], dtype=np.float32)
    assert export.pipeline(body).predict(features).tolist() == [0.375, 0.5]
    assert shipped_prediction(body, features).tolist() == [0.375, 0.5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes_featureids": [2, 0, 0]}, "a missing feature"),
        ({"nodes_featureids": [-1, 0, 0]}, "a missing feature"),
        ({"nodes_truenodeids": [3, 0, 0]}, "leads nowhere"),
        ({"nodes_truenodeids": [10**12, 0, 0]}, "leads nowhere"),
        ({"nodes_truenodeids": [-1, 0, 0]}, "leads nowhere"),
        ({"nodes_falsenodeids": [0, 0, 0]}, "leads nowhere"),  # for ever round
        ({"nodes_modes": ["BRANCH_LT", "LEAF", "LEAF"]}, "does not branch by <="),
        ({"n_targets": 2}, "does not predict a single share"),
        ({"base_values": [0.5]}, "does not predict a single share"),
        ({"post_transform": "LOGISTIC"}, "does not predict a single share"),
        ({"target_nodeids": [1, 9]}, "incomplete|missing leaf"),
        ({"nodes_nodeids": [2, 1, 0]}, "out of order"),
        ({"nodes_nodeids": [0, 0, 0]}, "out of order"),
        ({"nodes_values": None}, "incomplete"),
        ({"nodes_falsenodeids": [2]}, "incomplete"),
    ],
)
def test_a_forest_that_scikit_learn_would_follow_wrongly_is_refused(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ModelRefused, match=message):
        export.pipeline(forged(**change))


def test_another_graph_is_refused() -> None:
    graph = helper.make_graph([helper.make_node("Relu", ["X"], ["Y"])], "other", [], [])
    with pytest.raises(ModelRefused, match="a graph of Relu, not a scaler and a forest"):
        export.pipeline(helper.make_model(graph).SerializeToString())


@pytest.mark.parametrize(
    ("name", "suffix", "files"),
    [("hybrid_ml", ".pkl", ["model.pth", "model"]), ("rl_agent", ".pth", ["a.pkl", "a.pth.txt"])],
)
def test_a_wrong_suffix_says_the_right_one(
    name: str, suffix: str, files: list[str], tmp_path: Path
) -> None:
    for file in files:
        with pytest.raises(ExportError, match=f"{name} is exported as {suffix}$"):
            export.write(name, b"", tmp_path / file)


def test_a_file_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    spec = spec_of()
    body = Dqn(spec, tasks_of(spec, 1, 100)).weights()
    with pytest.raises(ExportError, match=r"missing/a\.pth: cannot be written: No such file"):
        export.write("rl_agent", body, tmp_path / "missing" / "a.pth")


def test_the_default_file_says_what_it_is() -> None:
    assert export.default_file("hybrid_ml", 3) == Path("hybrid_ml-v3.pkl")
    assert export.default_file("rl_agent", 12) == Path("rl_agent-v12.pth")
