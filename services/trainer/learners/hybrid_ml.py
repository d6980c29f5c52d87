"""The learner behind `hybrid_ml`: a forest that imitates the Oracle's share, refitted in the run.

The window is filled with generated tasks at first, which results replace one by one: the first
refits are on as many tasks as the pre-trained model. The score is the total execution time with the
predicted shares over the Oracle's on the same tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from onnxruntime import InferenceSession
from skl2onnx import to_onnx
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from services.trainer.learner import Learner, Results, Update
from services.trainer.pretraining import pretraining_tasks
from shared.domain.learning.features import forest_features
from shared.domain.physics import fastest, price
from shared.domain.schedulers import FOREST, ORACLE
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Tasks, concatenate, take
from shared.domain.times import seconds
from shared.messages.forest_model import open_model, predict, shares

# Old enough for every onnxruntime of recent years.
OPSET = 17


@dataclass(frozen=True, slots=True)
class LabelledTasks:
    """Tasks with the Oracle's share for each."""

    tasks: Tasks
    share: Floats

    def __len__(self) -> int:
        return len(self.tasks)

    def last(self, count: int) -> LabelledTasks:
        start = max(len(self) - count, 0)
        return LabelledTasks(take(self.tasks, slice(start, None)), self.share[start:])


class ForestLearner(Learner):
    name = FOREST
    learns_from = ORACLE
    model_format = "onnx"

    def __init__(self, spec: RunSpec) -> None:
        super().__init__(spec)
        rule = spec.learning.forest
        self.judge_on, self.tolerance = rule.judge_on, rule.tolerance
        self._generated: LabelledTasks | None = None
        self._opened: tuple[bytes, InferenceSession] | None = None

    @property
    def window(self) -> int:
        return self.spec.learning.forest.window

    @property
    def every(self) -> int:
        return self.spec.learning.forest.retrain_every

    def pretrain(self, tasks: Tasks) -> Update:
        return Update(fit(label(tasks, self.spec), self.spec))

    def learn(self, model: bytes | None, results: Results, new: int, version: int) -> Update:
        window = self.filled_window(results)
        return Update(
            fit(window, self.spec),
            trained_on=len(window),
            first_task=int(window.tasks.task_id[0]),
        )

    def filled_window(self, results: Results) -> LabelledTasks:
        """The results, and as many generated tasks before them as there is room for."""
        labelled = LabelledTasks(results.tasks, results.share)
        room = self.window - self.judge_on - len(labelled)
        if room <= 0 or not self.spec.learning.pretrain_tasks:
            return labelled
        if self._generated is None:
            self._generated = label(pretraining_tasks(self.spec), self.spec)
        generated = self._generated.last(room)
        tasks = concatenate([generated.tasks, labelled.tasks])
        return LabelledTasks(tasks, np.concatenate([generated.share, labelled.share]))

    def score(self, model: bytes, results: Results) -> float:
        return score_of(self._open(model), LabelledTasks(results.tasks, results.share), self.spec)

    def errors(self, model: bytes, results: Results) -> Floats:
        predicted = predict(self._open(model), forest_features(results.tasks))
        return np.asarray(np.abs(predicted - results.share))

    def _open(self, model: bytes) -> InferenceSession:
        if self._opened is None or self._opened[0] is not model:
            self._opened = (model, open_model(model))
        return self._opened[1]


def label(tasks: Tasks, spec: RunSpec) -> LabelledTasks:
    """Generated tasks with the Oracle's shares; their ids become -1."""
    generated = replace(tasks, task_id=np.full(len(tasks), -1))
    return LabelledTasks(generated, fastest(tasks, spec, times=seconds(tasks, spec)).gpu_fraction)


def fit(labelled: LabelledTasks, spec: RunSpec) -> bytes:
    """Fit a StandardScaler and a random forest; returns ONNX."""
    pipeline: Pipeline = make_pipeline(
        StandardScaler(),
        RandomForestRegressor(spec.learning.forest.trees, random_state=spec.seed % 2**32),
    )
    features = forest_features(labelled.tasks)
    pipeline.fit(features, labelled.share)
    return bytes(to_onnx(pipeline, features[:1], target_opset=OPSET).SerializeToString())


def score_of(model: InferenceSession, labelled: LabelledTasks, spec: RunSpec) -> float:
    """Total execution time over the Oracle's."""
    times = seconds(labelled.tasks, spec)
    priced = price(labelled.tasks, shares(model, labelled.tasks, spec), spec, times=times)
    oracle = price(labelled.tasks, labelled.share, spec, times=times)
    return float(priced.time.sum() / max(oracle.time.sum(), 1e-12))
