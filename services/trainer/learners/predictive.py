"""The learner behind `predictive`: task times from its own results, and prices of device time.

A result shows the seconds of one device type, the one that ran the task. Each type has a line in
the logarithms (`shared.domain.learning.time_lines`) and gradient-boosted trees for the rest; a
type with few results is also fitted on pre-training tasks, which the platform's expected times
label. Then the newest tasks are replayed with the predicted times to find better prices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from sklearn.ensemble import HistGradientBoostingRegressor

from services.trainer.learner import Learner, Results, Update
from shared.domain.hardware.platform import NOWHERE
from shared.domain.learning import device_prices, price_search
from shared.domain.learning.device_prices import bulk_lane
from shared.domain.learning.features import Matrix
from shared.domain.learning.objective import charge
from shared.domain.learning.price_search import Replay, SearchResult
from shared.domain.learning.time_lines import TimeLines, kinds_of, numbers_of
from shared.domain.physics import moving_seconds
from shared.domain.schedulers import PREDICTIVE
from shared.domain.spec import RunSpec
from shared.domain.tasks import Bools, Floats, Integers, Tasks, take
from shared.domain.times import seconds
from shared.messages.forest_model import open_model
from shared.messages.time_model import Examples, TimeModel, features_of, tree_features

OPSETS = {"": 17, "ai.onnx.ml": 3}
IR_VERSION = 8  # old enough for every onnxruntime of recent years
# Fewer results say nothing about how wrong predictions are.
ENOUGH_ERRORS = 20
SHORTEST = 1e-12  # seconds


class PredictiveLearner(Learner):
    name = PREDICTIVE

    def __init__(self, spec: RunSpec) -> None:
        super().__init__(spec.without_noise)
        self.rule, self.platform = spec.learning.predictive, spec.platform
        self.bulk = bulk_lane(self.platform, self.rule.bulk_share)
        # In seconds of turnaround.
        self.charge = charge(spec) / spec.objective.turnaround

    @property
    def window(self) -> int:
        return max(self.rule.window, self.rule.replay)

    @property
    def every(self) -> int:
        return self.rule.retrain_every

    def pretrain(self, tasks: Tasks) -> Update | None:
        if not len(tasks):
            return None
        random = np.random.default_rng([self.spec.seed, 1])
        types = len(self.platform.types)
        with np.errstate(divide="ignore"):
            log_seconds = np.log(seconds(tasks, self.spec))
        kinds = tuple(sorted(set(kinds_of(tasks))))
        row = {kind: number for number, kind in enumerate(kinds)}
        kind = np.array([row[each] for each in kinds_of(tasks)], np.int64)
        examples = Examples(numbers_of(tasks), kind, log_seconds)
        observed = _Observed.none(types).with_examples(examples, len(tasks))
        prices = device_prices.start(types)
        prices[:types] += self.charge
        model = self._fit(_unfitted(types, kinds, prices, examples), kinds, observed)
        # A long stream of tasks like these: the queues of a short one never fill.
        rows = random.integers(len(tasks), size=self.rule.replay)
        gaps = np.diff(tasks.arrival_time, prepend=0.0)
        arrival = np.cumsum(gaps[random.integers(len(tasks), size=self.rule.replay)])
        times = model.whole_seconds(tasks, self.spec)[rows]
        result = self._search(model, arrival, times, self.rule.pretrain_rounds, random)
        return self._update(model, result, len(tasks), "pre-trained")

    def learn(self, model: bytes | None, results: Results, new: int, version: int) -> Update | None:
        before = self._open(model)
        examples = self._kept(before.examples)
        # Kinds that neither an example nor a result of the window has are forgotten.
        kinds = before.lines.kinds[: examples.kind.max(initial=-1) + 1]
        observed = _Observed.of(results.last(self.rule.window), self.spec, kinds)
        if not len(observed.type):
            return None
        known = observed.with_examples(examples, self.rule.examples)
        start = replace(before, spread=self._spread(before, results.last(new)), examples=examples)
        fitted, rounds = self._fit(start, observed.kinds, known), self.rule.rounds
        random = np.random.default_rng([self.spec.seed, version])
        newest = results.last(self.rule.replay)
        if newest.tasks.width is not None and (newest.tasks.width > 1).any():
            # The replay has no wide tasks, so it cannot tell what prices do beside them.
            fitted, rounds = replace(fitted, prices=device_prices.none(self.charge)), 0
        times = fitted.whole_seconds(newest.tasks, self.spec)
        arrival = newest.tasks.arrival_time
        result = self._search(fitted, arrival, times, rounds, random)
        return self._update(fitted, result, len(observed.type), "learned")

    def errors(self, model: bytes, results: Results) -> Floats | None:
        """The errors of the log seconds; 0 where a task's time is not of one device type."""
        errors = np.zeros(len(results))
        opened = TimeModel.open(model)
        observed = _Observed.of(results, self.spec, opened.lines.kinds)
        errors[observed.row] = np.abs(self._misses(opened, observed))
        return errors

    def _open(self, model: bytes | None) -> TimeModel:
        """The previous model; before the first, one that is not fitted."""
        if model:
            return TimeModel.open(model)
        types = len(self.platform.types)
        nothing = Examples(np.zeros((0, 3)), np.zeros(0, np.int64), np.zeros((0, types)))
        return _unfitted(types, (), device_prices.start(types), nothing)

    def _kept(self, examples: Examples) -> Examples:
        """Only as many as may be used again."""
        most = slice(0, self.rule.examples)
        return Examples(examples.numbers[most], examples.kind[most], examples.log_seconds[most])

    def _misses(self, model: TimeModel, observed: _Observed) -> Floats:
        if model.session is None:
            return np.zeros(len(observed.type))
        # Kinds that are new since are numbered behind those that the model knows.
        kind = np.minimum(observed.kind, len(model.lines.kinds))
        predicted = model.log_seconds(observed.numbers, kind)
        return observed.log_seconds - predicted[np.arange(len(kind)), observed.type]

    def _spread(self, model: TimeModel, new: Results) -> Floats:
        """How wrong the model was on results that it had not seen, half of it as before."""
        observed = _Observed.of(new, self.spec, model.lines.kinds)
        misses, spread = self._misses(model, observed), model.spread.copy()
        for number in range(len(spread)):
            rows = misses[observed.type == number]
            if len(rows) >= ENOUGH_ERRORS:
                spread[number] = (spread[number] + rows.std()) / 2
        return spread

    def _fit(self, model: TimeModel, kinds: tuple[str, ...], observed: _Observed) -> TimeModel:
        types = len(self.platform.types)
        columns = observed.numbers, observed.kind, observed.type
        lines = TimeLines.fit(kinds, *columns, observed.log_seconds, types)
        parts = lines.kind_parts(observed.numbers, observed.kind)
        by_line = lines.log_seconds(observed.numbers, parts)
        features = tree_features(observed.numbers, parts, by_line)
        rest = observed.log_seconds - by_line[np.arange(len(by_line)), observed.type]
        grown, low, high = [], np.full((types, 3), -np.inf), np.full((types, 3), np.inf)
        off = np.zeros(types)
        for number in range(types):
            rows = np.flatnonzero(observed.type == number)
            if len(rows):
                low[number] = observed.numbers[rows].min(axis=0)
                high[number] = observed.numbers[rows].max(axis=0)
                off[number] = np.median(observed.off[rows])
            enough = len(rows) > 2 * self.rule.leaf_results
            used = features[rows][:, features_of(number, types)]
            grown.append(self._grow(used, rest[rows]) if enough else None)
        trees = to_onnx(grown, features.shape[1])
        session = open_model(trees)
        return replace(
            model, lines=lines, trees=trees, low=low, high=high, off=off, session=session
        )

    def _grow(self, features: Matrix, rest: Floats) -> HistGradientBoostingRegressor:
        rule = self.rule
        trees = HistGradientBoostingRegressor(
            max_iter=rule.trees,
            max_leaf_nodes=rule.leaves,
            min_samples_leaf=rule.leaf_results,
            learning_rate=rule.learning_rate,
            early_stopping=False,
            random_state=0,
        )
        return trees.fit(features, rest)

    def _search(
        self, model: TimeModel, arrival: Floats, times: Floats, rounds: int,
        random: np.random.Generator,
    ) -> tuple[SearchResult, Replay]:  # fmt: skip
        rule, spread = self.rule, model.spread
        noise = np.exp(spread * random.standard_normal(times.shape) - spread * spread / 2)
        replay = Replay.of(
            arrival, times, times * noise, self.platform.type_of, self.bulk, self.charge
        )
        first = device_prices.steps(len(self.platform.types))
        result = price_search.search(
            replay, model.prices, model.price_steps, rule.least_step * first, rounds=rounds,
            candidates=rule.candidates, speed=rule.speed, random=random,
        )  # fmt: skip
        return result, replay

    def _update(
        self, model: TimeModel, search: tuple[SearchResult, Replay], trained_on: int, verb: str
    ) -> Update:
        result, replay = search
        shipped = replace(
            model,
            prices=result.prices,
            price_steps=result.steps,
            scale=replay.scale,
            longest=float(replay.expected.min(axis=1).max(initial=0.0)),
            most_queued=result.most_queued,
        )
        names = [f"price_{each.name}" for each in self.platform.types]
        names += [f"price_{name}" for name in device_prices.COMMON]
        metrics = {name: float(each) for name, each in zip(names, result.prices, strict=True)}
        for each, spread in zip(self.platform.types, model.spread, strict=True):
            metrics[f"error_{each.name}"] = float(spread)
        metrics["replay_over_eft"] = result.cost / max(result.cost_without, SHORTEST)
        reason = (
            f"{verb} on {trained_on} tasks; in a replay of {len(replay.arrival)} "
            f"{metrics['replay_over_eft']:.3f} of earliest finish"
        )
        return Update(shipped.pack(), reason, metrics, trained_on)


class _Observed:
    """Log seconds of tasks, each on one device type."""

    def __init__(
        self, kinds: tuple[str, ...], numbers: Floats, kind: Integers, type: Integers,
        log_seconds: Floats, off: Floats, row: Integers,
    ) -> None:  # fmt: skip
        """`off`: the log seconds less those that the platform expects."""
        self.kinds, self.numbers, self.kind, self.type = kinds, numbers, kind, type
        self.log_seconds, self.off, self.row = log_seconds, off, row

    @classmethod
    def none(cls, types: int) -> _Observed:
        nothing = np.zeros(0, np.int64)
        return cls((), np.zeros((0, 3)), nothing, nothing, np.zeros(0), np.zeros(0), nothing)

    @classmethod
    def of(cls, results: Results, spec: RunSpec, kinds: tuple[str, ...]) -> _Observed:
        """Those of the results that one device type ran completely. New kinds are numbered after
        `kinds`, which were known before."""
        type, time = whole_times(results, spec)
        rows = np.flatnonzero(type != NOWHERE)
        tasks = take(results.tasks, rows)
        known = {kind: number for number, kind in enumerate(kinds)}
        kind = [known.setdefault(each, len(known)) for each in kinds_of(tasks)]
        log_seconds = np.log(np.maximum(time[rows], SHORTEST))
        numbers = np.array(kind, np.int64)
        expected = seconds(tasks, spec)[np.arange(len(rows)), type[rows]]
        usable = np.isfinite(expected) & (expected > 0)
        off = np.where(usable, log_seconds - np.log(np.where(usable, expected, 1.0)), 0.0)
        return cls(tuple(known), numbers_of(tasks), numbers, type[rows], log_seconds, off, rows)

    def with_examples(self, examples: Examples, enough: int) -> _Observed:
        """Add pre-training tasks for the types that have fewer than `enough`."""
        own = self.numbers, self.kind, self.type, self.log_seconds, self.off
        columns: list[list[Any]] = [[each] for each in own]
        for number in range(examples.log_seconds.shape[1]):
            missing = enough - int((self.type == number).sum())
            usable = np.flatnonzero(np.isfinite(examples.log_seconds[:, number]))
            rows = usable[: max(missing, 0)]
            added = (
                examples.numbers[rows],
                examples.kind[rows],
                np.full(len(rows), number),
                examples.log_seconds[rows, number],
                np.zeros(len(rows)),
            )
            for column, values in zip(columns, added, strict=True):
                column.append(values)
        numbers, kind, type, log_seconds, off = (np.concatenate(column) for column in columns)
        return _Observed(self.kinds, numbers, kind, type, log_seconds, off, self.row)


def whole_times(results: Results, spec: RunSpec) -> tuple[Integers, Floats]:
    """The device type that ran each task completely, or NOWHERE, and its seconds without paging and
    without moving data between nodes: those are added where a task is placed."""
    platform, tasks = spec.platform, results.tasks
    on_device: Bools = (results.gpu_time > 0) & (results.cpu_time == 0)
    on_cpu: Bools = (results.cpu_time > 0) & (results.gpu_time == 0)
    device = np.where(on_device, results.device, np.where(on_cpu, results.cpu, NOWHERE))
    known = (device != NOWHERE) & ~results.failed
    type = np.where(known, platform.type_of[device], NOWHERE)
    time = results.time.copy()
    if (moving := moving_seconds(tasks, spec)) is not None and tasks.home is not None:
        time -= np.where(tasks.home == platform.node_of[device], 0.0, moving)
    if spec.physics.memory_policy == "page":
        width = 1 if tasks.width is None else tasks.width
        overflow = np.maximum(tasks.memory_required - platform.memory_mb[type] * width, 0.0)
        time -= np.where(on_device, overflow / platform.bandwidth_mb_s[type], 0.0)
    return type, time


def _unfitted(types: int, kinds: tuple[str, ...], prices: Floats, examples: Examples) -> TimeModel:
    """A model before it is fitted."""
    rows = len(kinds) + 1
    lines = TimeLines(
        kinds,
        0.0,
        np.zeros((types, 4)),
        np.zeros((rows, 2)),
        np.zeros((types, rows, 2)),
        np.zeros((types, rows)),
    )
    anything = np.full((types, 3), np.inf)
    return TimeModel(
        lines, b"", np.zeros(types), prices, device_prices.steps(types), 1.0, examples,
        -anything, anything, np.zeros(types),
    )  # fmt: skip


def to_onnx(grown: list[HistGradientBoostingRegressor | None], features: int) -> bytes:
    """One ensemble with an output for each device type; None: always 0. Written here, because a
    converter would make one model for each type and take longer than the fit."""
    nodes: dict[str, list[Any]] = {
        f"nodes_{name}": []
        for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                     "falsenodeids", "missing_value_tracks_true")
    }  # fmt: skip
    leaves: dict[str, list[Any]] = {
        f"target_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")
    }
    base, tree = [0.0] * len(grown), 0
    for target, model in enumerate(grown):
        columns = features_of(target, len(grown))
        if model is None:
            _add_tree(nodes, leaves, tree, target, columns, [(True, 0.0, 0, 0.0, 0, 0)])
            tree += 1
            continue
        base[target] = float(np.ravel(model._baseline_prediction)[0])
        for (predictor,) in model._predictors:
            fields = ("is_leaf", "value", "feature_idx", "num_threshold", "left", "right")
            rows = list(zip(*(predictor.nodes[name].tolist() for name in fields), strict=True))
            _add_tree(nodes, leaves, tree, target, columns, rows)
            tree += 1
    attributes: dict[str, Any] = {"n_targets": len(grown), "base_values": base, **nodes, **leaves}
    node = helper.make_node(
        "TreeEnsembleRegressor", ["features"], ["log_seconds"], domain="ai.onnx.ml", **attributes
    )
    graph = helper.make_graph(
        [node],
        "times",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [None, features])],
        [helper.make_tensor_value_info("log_seconds", TensorProto.FLOAT, [None, len(grown)])],
    )
    opsets = [helper.make_opsetid(domain, number) for domain, number in OPSETS.items()]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    return bytes(model.SerializeToString())


def _add_tree(
    nodes: dict[str, list[Any]], leaves: dict[str, list[Any]], tree: int, target: int,
    columns: list[int], rows: list[tuple[bool, float, int, float, int, int]],
) -> None:  # fmt: skip
    for number, (is_leaf, value, feature, threshold, left, right) in enumerate(rows):
        values: tuple[Any, ...]
        if is_leaf:
            values = (tree, number, 0, 0.0, "LEAF", 0, 0, 0)
            _append(leaves, (tree, number, target, value))
        else:
            values = (tree, number, columns[feature], threshold, "BRANCH_LEQ", left, right, 0)
        _append(nodes, values)


def _append(columns: dict[str, list[Any]], values: tuple[Any, ...]) -> None:
    for column, value in zip(columns.values(), values, strict=True):
        column.append(value)
