"""The learner behind `hybrid_ml`: a forest that imitates the Oracle's share, refitted in the run.

A new forest (the challenger) is fitted on all but the newest results of the window, and compared on
those with the model in service (the champion). The score is the total execution time with the
predicted shares over the Oracle's on the same tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from onnxruntime import InferenceSession
from river.drift import ADWIN
from skl2onnx import to_onnx
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from shared.domain.features import forest_features
from shared.domain.physics import fastest, price
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

    def all_but_last(self, count: int) -> LabelledTasks:
        stop = max(len(self) - count, 0)
        return LabelledTasks(take(self.tasks, slice(0, stop)), self.share[:stop])


@dataclass(frozen=True, slots=True)
class ChallengeResult:
    """A challenger with its score and the champion's; lower is better, the Oracle has 1."""

    body: bytes
    trained_on: LabelledTasks
    score: float
    champion_score: float | None
    accepted: bool
    reason: str


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


def challenge(window: LabelledTasks, champion: bytes | None, spec: RunSpec) -> ChallengeResult:
    """Fit a challenger and compare it with the champion on results that it was not fitted on."""
    rule = spec.learning.forest
    fitted_on, unseen = window.all_but_last(rule.judge_on), window.last(rule.judge_on)
    body = fit(fitted_on, spec)
    score = score_of(open_model(body), unseen, spec)
    if champion is None:
        return ChallengeResult(body, fitted_on, score, None, True, "the first model")
    champion_score = score_of(open_model(champion), unseen, spec)
    accepted = score <= champion_score * (1 + rule.tolerance)
    comparison = f"{score:.4f} against {champion_score:.4f} on the newest {len(unseen)} results"
    reason = f"not worse: {comparison}" if accepted else f"worse: {comparison}"
    return ChallengeResult(body, fitted_on, score, champion_score, accepted, reason)


@dataclass(slots=True)
class ForestLearner:
    """A window of the Oracle's newest results, and when the next fit is due."""

    spec: RunSpec
    window: LabelledTasks | None = None
    results_since_fit: int = 0
    last_task: int = -1
    drifted: bool = False
    _detector: ADWIN = field(init=False)

    def __post_init__(self) -> None:
        delta = self.spec.learning.forest.drift_delta
        self._detector = ADWIN(delta=delta)  # type: ignore[no-untyped-call]

    def fill_window(self, labelled: LabelledTasks) -> None:
        """Fill the window with the pre-training tasks, which results replace one by one: the first
        challengers are fitted on as many tasks as the pre-trained champion."""
        self.window = labelled.last(self.spec.learning.forest.window)

    def add(self, labelled: LabelledTasks, champion: InferenceSession | None) -> None:
        """Add results; those at or before `last_task` are redeliveries and are ignored."""
        new = labelled.last(int((labelled.tasks.task_id > self.last_task).sum()))
        if not len(new):
            return
        self.last_task = int(new.tasks.task_id[-1])
        if champion is not None:
            self._detect_drift(new, champion)
        merged = new if self.window is None else _join(self.window, new)
        self.window = merged.last(self.spec.learning.forest.window)
        self.results_since_fit += len(new)

    def _detect_drift(self, new: LabelledTasks, champion: InferenceSession) -> None:
        """Pass the errors of the model in service through ADWIN (Bifet and Gavalda 2007)."""
        errors = np.abs(predict(champion, forest_features(new.tasks)) - new.share)
        for error in errors:
            before = self._detector.estimation
            self._detector.update(float(error))  # type: ignore[no-untyped-call]
            # ADWIN also detects smaller errors, which need no refit.
            if self._detector.drift_detected and self._detector.estimation > before:
                self.drifted = True

    def fit_is_due(self) -> bool:
        rule = self.spec.learning.forest
        enough = self.window is not None and len(self.window) >= 2 * rule.judge_on
        return enough and (self.results_since_fit >= rule.retrain_every or self.drifted)

    def start_fit(self) -> tuple[LabelledTasks, bool]:
        """The window to fit on, and whether drift was detected. Results that arrive during the fit
        count for the next one, so the learner never lags."""
        assert self.window is not None
        drifted, self.drifted, self.results_since_fit = self.drifted, False, 0
        return self.window, drifted


def _join(first: LabelledTasks, second: LabelledTasks) -> LabelledTasks:
    tasks = concatenate([first.tasks, second.tasks])
    return LabelledTasks(tasks, np.concatenate([first.share, second.share]))
