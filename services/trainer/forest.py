"""The forest behind `hybrid_ml`: imitates the Oracle's share, refitted while the stream flows.

A fresh forest (the challenger) is fitted on the window without its newest results and judged on
those, beside the model in service (the champion). The score is what counts in the arena: total
execution time of the shares it predicts, over the Oracle's on the same tasks.
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

from services.trainer.charges import charged
from shared.features import forest_features
from shared.forest import open_model, predict, shares
from shared.physics import fastest_share, price
from shared.spec import RunSpec
from shared.tasks import Floats, Tasks, concatenate, take

# Operators that every onnxruntime of the last years knows.
OPSET = 17


@dataclass(frozen=True, slots=True)
class Labelled:
    """Tasks with the Oracle's share of each."""

    tasks: Tasks
    share: Floats

    def __len__(self) -> int:
        return len(self.tasks)

    def last(self, count: int) -> Labelled:
        start = max(len(self) - count, 0)
        return Labelled(take(self.tasks, slice(start, None)), self.share[start:])

    def without_last(self, count: int) -> Labelled:
        stop = max(len(self) - count, 0)
        return Labelled(take(self.tasks, slice(0, stop)), self.share[:stop])


@dataclass(frozen=True, slots=True)
class Verdict:
    """A challenger, its score and the champion's; lower is better, 1 is the Oracle."""

    body: bytes
    trained_on: Labelled
    challenger: float
    champion: float | None
    ships: bool
    reason: str


def fit(labelled: Labelled, spec: RunSpec) -> bytes:
    """A StandardScaler and a random forest, as ONNX."""
    pipeline: Pipeline = make_pipeline(
        StandardScaler(),
        RandomForestRegressor(spec.learning.forest.trees, random_state=spec.seed % 2**32),
    )
    features = forest_features(labelled.tasks)
    pipeline.fit(features, labelled.share)
    return bytes(to_onnx(pipeline, features[:1], target_opset=OPSET).SerializeToString())


def regret(model: InferenceSession, labelled: Labelled, spec: RunSpec) -> float:
    """Total execution time over the Oracle's."""
    chosen = price(labelled.tasks, shares(model, labelled.tasks, spec), spec)
    time, _ = charged(labelled.tasks, chosen.time, chosen.energy, chosen.failed, spec)
    best = price(labelled.tasks, labelled.share, spec)
    return float(time.sum() / max(best.time.sum(), 1e-12))


def judge(window: Labelled, champion: bytes | None, spec: RunSpec) -> Verdict:
    """Fit a challenger and hold it against the champion on results that it has not seen."""
    rule = spec.learning.forest
    known, unseen = window.without_last(rule.judge_on), window.last(rule.judge_on)
    body = fit(known, spec)
    challenger = regret(open_model(body), unseen, spec)
    if champion is None:
        return Verdict(body, known, challenger, None, True, "the first model")
    standing = regret(open_model(champion), unseen, spec)
    ships = challenger <= standing * (1 + rule.tolerance)
    comparison = f"{challenger:.4f} against {standing:.4f} on the newest {len(unseen)} results"
    reason = f"not worse: {comparison}" if ships else f"worse: {comparison}"
    return Verdict(body, known, challenger, standing, ships, reason)


def generated(tasks: Tasks, spec: RunSpec) -> Labelled:
    """Tasks labelled by the Oracle, for learning before the first result; they have no ids."""
    nameless = replace(tasks, task_id=np.full(len(tasks), -1))
    return Labelled(nameless, fastest_share(tasks, spec))


@dataclass(slots=True)
class ForestLearner:
    """The window of a run's newest Oracle results, and when the next fit is due."""

    spec: RunSpec
    window: Labelled | None = None
    fresh: int = 0  # results since the last fit
    last_task: int = -1
    drifted: bool = False
    _detector: ADWIN = field(init=False)

    def __post_init__(self) -> None:
        delta = self.spec.learning.forest.drift_delta
        self._detector = ADWIN(delta=delta)  # type: ignore[no-untyped-call]

    def begin_with(self, labelled: Labelled) -> None:
        """Fill the window with what was known before the first result. Results push it out, so
        that a fresh forest has as much to learn from as the one that it is held against."""
        self.window = labelled.last(self.spec.learning.forest.window)

    def add(self, labelled: Labelled, champion: InferenceSession | None) -> None:
        """Take results in; those that were seen before change nothing."""
        new = labelled.last(int((labelled.tasks.task_id > self.last_task).sum()))
        if not len(new):
            return
        self.last_task = int(new.tasks.task_id[-1])
        if champion is not None:
            self._watch(new, champion)
        merged = new if self.window is None else _join(self.window, new)
        self.window = merged.last(self.spec.learning.forest.window)
        self.fresh += len(new)

    def _watch(self, new: Labelled, champion: InferenceSession) -> None:
        """Errors of the model in service, task by task, through the drift detector."""
        errors = np.abs(predict(champion, forest_features(new.tasks)) - new.share)
        for error in errors:
            before = self._detector.estimation
            self._detector.update(float(error))  # type: ignore[no-untyped-call]
            # ADWIN reports changes for the better as well; those need no refit.
            if self._detector.drift_detected and self._detector.estimation > before:
                self.drifted = True

    def due(self) -> bool:
        rule = self.spec.learning.forest
        enough = self.window is not None and len(self.window) >= 2 * rule.judge_on
        return enough and (self.fresh >= rule.retrain_every or self.drifted)

    def begin(self) -> tuple[Labelled, bool]:
        """The window to fit on, and whether drift asked for it. Results that come during the fit
        count for the next one: fits coalesce, the learner never falls behind."""
        assert self.window is not None
        drifted, self.drifted, self.fresh = self.drifted, False, 0
        return self.window, drifted


def _join(first: Labelled, second: Labelled) -> Labelled:
    tasks = concatenate([first.tasks, second.tasks])
    return Labelled(tasks, np.concatenate([first.share, second.share]))
