"""A shipped model as a file for scikit-learn or PyTorch.

A model is published as ONNX or safetensors, which are data. It is rebuilt from those numbers:
nothing is fitted or unpickled, only the file that is written is a pickle. The libraries are large,
so each is imported where it is needed.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared.domain.schedulers import FOREST
from shared.errors import ArenaError, ModelRefused
from shared.messages.models import NO_MODEL
from shared.runtime.extras import require

TRAINING = "training."  # tensors that only the learner needs

NO_CHILD, NO_FEATURE = -1, -2  # in a leaf of scikit-learn

Array = NDArray[Any]


class ExportError(ArenaError):
    """The file cannot be written, or is of the wrong kind."""


def suffix(name: str, model_format: str) -> str:
    """The forest of `hybrid_ml` becomes scikit-learn's objects, tensors become PyTorch's; another
    ONNX graph is written as it is."""
    if name == FOREST:
        return ".pkl"
    return ".onnx" if model_format == "onnx" else ".pth"


def default_file(name: str, version: int, model_format: str = "safetensors") -> Path:
    return Path(f"{name}-v{version}{suffix(name, model_format)}")


def write(name: str, body: bytes, file: Path, model_format: str = "safetensors") -> None:
    expected = suffix(name, model_format)
    if file.suffix != expected:
        raise ExportError(f"{file}: a model of {name} is exported as {expected}")
    if body == NO_MODEL:
        raise ModelRefused(f"this version of {name} is no model: there was nothing to learn from")
    # In memory first: a model that cannot be read must not leave an incomplete file.
    content = io.BytesIO()
    if name == FOREST:
        import joblib

        joblib.dump(pipeline(body), content)
    elif expected == ".onnx":
        content.write(body)
    else:
        require("torch")
        import torch

        torch.save(state_dict(body), content)
    try:
        file.write_bytes(content.getvalue())
    except OSError as error:
        raise ExportError(f"{file}: cannot be written: {error.strerror}") from None


def state_dict(body: bytes) -> dict[str, Any]:
    """The network's tensors, and others that belong to it such as the `scale` of its rewards."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        tensors = load(body)
    except SafetensorError as error:
        raise ModelRefused(f"not a safetensors file: {error}") from None
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(TRAINING)}


def pipeline(body: bytes) -> Any:
    """The scikit-learn pipeline that the ONNX graph was made from, a scaler and a forest."""
    from sklearn.pipeline import make_pipeline

    scaler, ensemble = _operators(body)
    try:
        offset, scale = (np.array(scaler[key], dtype=np.float32) for key in ("offset", "scale"))
        if offset.shape != scale.shape or not (scale > 0).all():
            raise ModelRefused("the scaler has no positive scale for every feature")
        steps = _scaler(offset, scale), _forest(ensemble, scale)
    except (KeyError, IndexError, ValueError) as error:
        raise ModelRefused(f"the scaler or the forest is incomplete: {error!r}") from None
    return make_pipeline(*steps)


def _operators(body: bytes) -> list[dict[str, Any]]:
    """The attributes of each operator of the graph."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        nodes = onnx.load_from_string(body).graph.node
    except DecodeError:
        raise ModelRefused("not an ONNX file") from None
    kinds = [node.op_type for node in nodes]
    if kinds != ["Scaler", "TreeEnsembleRegressor"]:
        raise ModelRefused(f"a graph of {', '.join(kinds) or 'nothing'}, not a scaler and a forest")
    return [
        {entry.name: onnx.helper.get_attribute_value(entry) for entry in node.attribute}
        for node in nodes
    ]


def _binary(scale: Array) -> Array:
    """The power of two nearest to the deviation.

    ONNX multiplies by a rounded 1/deviation where scikit-learn divides: the last bit could differ,
    and with it the path through a tree. Dividing by a power of two is exact, and any unit will do
    as long as the thresholds are in the same one.
    """
    return np.exp2(-np.round(np.log2(scale.astype(np.float64))))


def _scaler(offset: Array, scale: Array) -> Any:
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    scaler.mean_ = offset.astype(np.float64)
    scaler.var_ = scale.astype(np.float64) ** -2
    scaler.scale_ = _binary(scale)
    scaler.n_features_in_ = len(offset)
    return scaler


def _forest(ensemble: dict[str, Any], scale: Array) -> Any:
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.tree import DecisionTreeRegressor

    nodes, values, starts = _nodes(ensemble, scale)
    forest = RandomForestRegressor(len(starts))
    forest.estimator_ = DecisionTreeRegressor()
    forest.n_features_in_, forest.n_outputs_ = len(scale), 1
    split = zip(np.split(nodes, starts[1:]), np.split(values, starts[1:]), strict=True)
    forest.estimators_ = [_tree(own, shares, len(scale)) for own, shares in split]
    return forest


def _nodes(ensemble: dict[str, Any], scale: Array) -> tuple[Array, Array, Array]:
    """The nodes of all trees in scikit-learn's layout, their values, and the start of each tree."""
    from sklearn.tree._tree import NODE_DTYPE

    _check_kind(ensemble)
    tree, number = np.array(ensemble["nodes_treeids"]), np.array(ensemble["nodes_nodeids"])
    stride = number.max() + 1
    position = tree * stride + number
    # As the converter writes them; scikit-learn expects a tree's root first as well.
    _require(bool((np.diff(position) > 0).all()), "has its nodes out of order")
    trees, starts = np.unique(tree, return_index=True)
    first = starts[np.searchsorted(trees, tree)]
    own_index = np.arange(len(position))

    def column(name: str, kind: type = np.int64) -> Array:
        values: Array = np.array(ensemble[f"nodes_{name}"], dtype=kind)
        _require(values.shape == tree.shape, f"is incomplete: nodes_{name}")
        return values

    leaf = column("modes", np.bytes_) == b"LEAF"
    feature = np.where(leaf, 0, column("featureids"))
    # scikit-learn does not check the indices, and a graph may hold any.
    _require(bool(((feature >= 0) & (feature < len(scale))).all()), "splits by a missing feature")

    def child(name: str) -> Array:
        target = tree * stride + column(name)
        index = np.searchsorted(position, target).clip(max=len(position) - 1)
        exists = (position[index] == target) & (tree[index] == tree) & (index > own_index)
        _require(bool((leaf | exists).all()), "has a branch that leads nowhere")
        return np.where(leaf, NO_CHILD, index - first)

    # The graph has no sample counts, impurities or values of inner nodes: they stay zero or NaN.
    nodes = np.zeros(len(position), dtype=NODE_DTYPE)
    nodes["left_child"], nodes["right_child"] = child("truenodeids"), child("falsenodeids")
    nodes["feature"] = np.where(leaf, NO_FEATURE, feature)
    threshold = _thresholds(column("values", np.float32), scale[feature])
    nodes["threshold"] = np.where(leaf, NO_FEATURE, threshold / _binary(scale)[feature])
    nodes["impurity"] = np.nan
    return nodes, np.where(leaf, _shares(ensemble, position, stride, len(trees)), np.nan), starts


def _check_kind(ensemble: dict[str, Any]) -> None:
    _require(set(ensemble["nodes_modes"]) <= {b"BRANCH_LEQ", b"LEAF"}, "does not branch by <=")
    single = ensemble.get("n_targets", 1) == 1 and not any(ensemble.get("base_values", ()))
    single &= ensemble.get("post_transform", b"NONE") == b"NONE"
    _require(single, "does not predict a single share")


def _thresholds(scaled: Array, scale: Array) -> Array:
    """The largest distance from the mean that, scaled like ONNX does, is within the threshold."""
    infinity = np.float32(np.inf)
    distance = (scaled.astype(np.float64) / scale).astype(np.float32)
    for _ in range(2):  # the quotient may be off by one or two roundings
        further = np.nextafter(distance, infinity)
        distance = np.where(further * scale <= scaled, further, distance)
    for _ in range(2):
        nearer = np.nextafter(distance, -infinity)
        distance = np.where(distance * scale > scaled, nearer, distance)
    return distance.astype(np.float64)


def _shares(ensemble: dict[str, Any], position: Array, stride: int, trees: int) -> Array:
    """The prediction of each leaf. ONNX sums over the trees, of values divided by their number."""
    mean = ensemble.get("aggregate_function", b"SUM") == b"AVERAGE"
    target = np.array(ensemble["target_treeids"]) * stride + np.array(ensemble["target_nodeids"])
    index = np.searchsorted(position, target)
    _require(bool((position[index] == target).all()), "has a value for a missing leaf")
    shares = np.zeros(len(position))
    np.add.at(shares, index, np.array(ensemble["target_weights"]) * (1 if mean else trees))
    return shares


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ModelRefused(f"the forest {problem}")


def _tree(nodes: Array, shares: Array, features: int) -> Any:
    from sklearn.tree import DecisionTreeRegressor
    from sklearn.tree._tree import Tree

    values = shares.reshape(-1, 1, 1)
    state = {"max_depth": _depth(nodes), "node_count": len(nodes), "nodes": nodes, "values": values}
    grown = Tree(features, np.ones(1, dtype=np.intp), 1)
    grown.__setstate__(state)
    tree = DecisionTreeRegressor()
    tree.tree_ = grown
    tree.n_features_in_, tree.max_features_, tree.n_outputs_ = features, features, 1
    return tree


def _depth(nodes: Array) -> int:
    depth, level = -1, np.zeros(1, dtype=np.int64)
    while len(level):
        depth += 1
        below = np.unique([nodes["left_child"][level], nodes["right_child"][level]])
        level = below[below != NO_CHILD]
    return depth
