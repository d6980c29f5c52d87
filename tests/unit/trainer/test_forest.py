"""The forest: its features, how well it imitates the Oracle, when it is refitted and accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from services.trainer.challenge import Challenge, challenge
from services.trainer.learner import Results
from services.trainer.learners import hybrid_ml as forest
from services.trainer.learners.hybrid_ml import ForestLearner, LabelledTasks
from services.trainer.result_window import ResultWindow
from services.trainer.wall_clock_training import DriftDetector
from shared.domain.learning.features import forest_features
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Tasks
from shared.domain.workload import Cursor, generate
from tests.unit.trainer.agents import results

OVERLAPPED = {"physics": {"split": "overlapped"}}


def spec_of(seed: int = 1, trees: int = 100, **more: Any) -> RunSpec:
    return RunSpec.parse({"seed": seed, "learning": {"forest": {"trees": trees}}, **more})


def tasks_of(spec: RunSpec, count: int, *, first: int = 0, preset: str = "hpc") -> Tasks:
    """Tasks with the ids from `first` on; each id has its own task."""
    run = RunSpec.parse({"seed": spec.seed, "workload": {"preset": preset}})
    return generate(run, Cursor(generated=first, next_task=first), count)[0]


def seconds(tasks: Tasks, share: Floats, spec: RunSpec) -> Floats:
    """Execution times from the formulas, independent of the product's physics."""
    on_cpu = (tasks.size / 1000) ** 1.5 / (tasks.compute_intensity + 0.5)
    on_gpu = on_cpu / (1 + 3 * tasks.compute_intensity) + tasks.memory_required / 16000
    share = np.where(share * tasks.memory_required > 8000, 0.0, share)
    parts = share * on_gpu, (1 - share) * on_cpu
    return np.maximum(*parts) if spec.physics.split == "overlapped" else sum(parts)


def oracle_share(tasks: Tasks, spec: RunSpec) -> Floats:
    """The fastest of a thousand shares."""
    grid = np.linspace(0, 1, 1001)
    times = np.stack([seconds(tasks, np.full(len(tasks), share), spec) for share in grid])
    return grid[times.argmin(axis=0)]


def labelled(spec: RunSpec, count: int, *, first: int = 0, preset: str = "hpc") -> LabelledTasks:
    tasks = tasks_of(spec, count, first=first, preset=preset)
    return LabelledTasks(tasks, oracle_share(tasks, spec))


def always(share: float, spec: RunSpec) -> bytes:
    """A model that predicts the same share for every task."""
    tasks = tasks_of(spec, 10)
    return forest.fit(LabelledTasks(tasks, np.full(10, share)), spec)


def total(body: bytes, of: LabelledTasks, spec: RunSpec) -> float:
    """Total time of a model's shares, rounded within 0.1 of 0 and 1, over the Oracle's."""
    raw = forest.predict(forest.open_model(body), forest_features(of.tasks))
    shares = np.where(raw < 0.1, 0.0, np.where(raw > 0.9, 1.0, raw))
    return float(seconds(of.tasks, shares, spec).sum() / seconds(of.tasks, of.share, spec).sum())


class TestFeatures:
    def test_they_have_a_fixed_order(self) -> None:
        tasks = Tasks(
            task_id=np.array([3, 4]),
            size=np.array([200.0, 4000.0]),
            compute_intensity=np.array([0.5, 0.25]),
            memory_required=np.array([800.0, 50.0]),
            arrival_time=np.zeros(2),
        )
        features = forest_features(tasks)
        assert features.dtype == np.float32
        assert features[0].tolist() == pytest.approx([200, 0.5, 800, 4, 0.000625])
        assert features[1].tolist() == pytest.approx([4000, 0.25, 50, 0.0125, 0.005])

    def test_a_task_without_memory_has_finite_features(self) -> None:
        tasks = Tasks(np.array([0]), *(np.array([value]) for value in (10.0, 1.0, 0.0, 0.0)))
        assert forest_features(tasks).tolist() == [[10, 1, 0, 0, 1000]]


class TestFit:
    @pytest.mark.parametrize("seed", [1, 2])
    def test_1000_tasks_bring_it_within_2_percent_of_the_oracle(self, seed: int) -> None:
        spec = spec_of(seed)
        body = forest.fit(labelled(spec, 1000), spec)
        assert 1 <= total(body, labelled(spec, 3000, first=1000), spec) < 1.02

    @pytest.mark.parametrize("seed", [1, 2])
    def test_overlapped_parts_within_5_percent_of_the_oracle(self, seed: int) -> None:
        spec = spec_of(seed, **OVERLAPPED)
        body = forest.fit(labelled(spec, 1000), spec)
        unseen = labelled(spec, 3000, first=1000)
        assert 1 <= total(body, unseen, spec) < 1.05
        # Nearly all tasks are split there.
        assert ((unseen.share > 0.05) & (unseen.share < 0.95)).mean() > 0.9

    def test_the_onnx_model_predicts_what_scikit_learn_predicts(self) -> None:
        spec = spec_of(trees=20, **OVERLAPPED)
        known, unseen = labelled(spec, 500), tasks_of(spec, 2000, first=500)
        same = make_pipeline(StandardScaler(), RandomForestRegressor(20, random_state=spec.seed))
        same.fit(forest_features(known.tasks), known.share)
        onnx = forest.open_model(forest.fit(known, spec))
        predicted = forest.predict(onnx, forest_features(unseen))
        difference = np.abs(predicted - same.predict(forest_features(unseen)))
        # In 32 bits a feature at a threshold may be on the other side of it.
        assert np.quantile(difference, 0.99) < 1e-5
        assert difference.max() < 0.1

    def test_the_same_window_and_seed_give_the_same_bytes(self) -> None:
        spec = spec_of(trees=5)
        assert forest.fit(labelled(spec, 200), spec) == forest.fit(labelled(spec, 200), spec)
        assert forest.fit(labelled(spec, 200), spec) != forest.fit(labelled(spec, 201), spec)

    def test_the_labels_of_generated_tasks_are_the_oracles(self) -> None:
        for spec in (spec_of(), spec_of(**OVERLAPPED)):
            labelled = forest.label(tasks_of(spec, 300), spec)
            time = seconds(labelled.tasks, labelled.share, spec)
            best = seconds(labelled.tasks, oracle_share(labelled.tasks, spec), spec)
            assert (time <= best + 1e-9).all()

    def test_predictions_beyond_0_and_1_are_clipped(self) -> None:
        spec = spec_of(trees=1)
        features = forest_features(tasks_of(spec, 3))
        for wild, cut in ((1.7, 1.0), (-0.4, 0.0)):
            assert forest.predict(forest.open_model(always(wild, spec)), features).tolist() == (
                [cut] * 3
            )


def oracle_results(labelled: LabelledTasks) -> Results:
    nothing = np.zeros(len(labelled))
    return results(labelled.tasks, labelled.share, nothing, nothing)


def challenged(window: LabelledTasks, champion: bytes | None, spec: RunSpec) -> Challenge:
    without_generated = spec.model_copy(
        update={"learning": spec.learning.model_copy(update={"pretrain_tasks": 0})}
    )
    learner = ForestLearner(without_generated)
    result = challenge(learner, champion, oracle_results(window), 50, 2)
    assert result is not None
    return result


class TestChallenge:
    SPEC = spec_of(trees=10)

    def test_the_first_model_is_accepted(self) -> None:
        result = challenged(labelled(self.SPEC, 200), None, self.SPEC)
        assert (result.accepted, result.reason) == (True, "the first model")
        assert "champion_score" not in result.metrics
        assert result.metrics["score"] >= 1

    def test_an_equal_challenger_is_accepted(self) -> None:
        window = labelled(self.SPEC, 200)
        champion = forest.fit(labelled(self.SPEC, 175), self.SPEC)
        result = challenged(window, champion, self.SPEC)
        assert result.accepted
        assert result.metrics["champion_score"] == result.metrics["score"]
        assert result.update.body == champion
        assert result.reason.startswith("not worse: ")

    def test_a_better_challenger_is_accepted(self) -> None:
        result = challenged(labelled(self.SPEC, 400), always(0.5, self.SPEC), self.SPEC)
        assert result.accepted
        assert result.metrics["score"] < result.metrics["champion_score"]

    @pytest.mark.parametrize(("tolerance", "accepted"), [(0.0, False), (10.0, True)])
    def test_a_worse_challenger_is_accepted_only_within_the_tolerance(
        self, tolerance: float, accepted: bool
    ) -> None:
        """The champion was fitted on the unseen results, the challenger on inverted shares."""
        rule = {"trees": 10, "tolerance": tolerance}
        spec = RunSpec.parse({"seed": 1, "learning": {"forest": rule}})
        window = labelled(spec, 200)
        champion = forest.fit(labelled(spec, 1000), spec)
        misled = np.concatenate([1 - window.share[:-25], window.share[-25:]])
        result = challenged(LabelledTasks(window.tasks, misled), champion, spec)
        assert result.accepted is accepted
        assert result.metrics["score"] > result.metrics["champion_score"]
        assert result.reason.startswith("worse: ") is not accepted

    def test_it_is_fitted_on_all_but_the_newest_results_and_scored_on_those(self) -> None:
        window, champion = labelled(self.SPEC, 300), always(1.0, self.SPEC)
        result = challenged(window, champion, self.SPEC)
        fitted_on = result.window
        assert (fitted_on.count, fitted_on.first_task, fitted_on.last_task) == (275, 0, 274)
        newest = LabelledTasks(tasks_of(self.SPEC, 25, first=275), window.share[275:])
        score, champion_score = result.metrics["score"], result.metrics["champion_score"]
        assert score == pytest.approx(total(result.update.body, newest, self.SPEC))
        # All on the GPU, by hand.
        everything = seconds(newest.tasks, np.ones(25), self.SPEC).sum()
        best = seconds(newest.tasks, newest.share, self.SPEC).sum()
        assert champion_score == pytest.approx(everything / best)
        assert f"{score:.4f} against {champion_score:.4f}" in result.reason
        assert result.reason.endswith("on the newest 25 results")


class TestWindow:
    SPEC = spec_of(trees=10)

    def test_results_replace_the_generated_tasks(self) -> None:
        spec = RunSpec.parse({"learning": {"forest": {"window": 200}, "pretrain_tasks": 300}})
        learner = ForestLearner(spec)
        window = learner.filled_window(oracle_results(labelled(spec, 60)))
        # 25 of the window's 200 are for comparing models.
        assert window.tasks.task_id.tolist() == [-1] * 115 + list(range(60))
        window = learner.filled_window(oracle_results(labelled(spec, 175, first=60)))
        assert window.tasks.task_id.tolist() == list(range(60, 235))

    def test_a_fit_is_due_after_50_results(self) -> None:
        learner, some = ForestLearner(self.SPEC), oracle_results(labelled(self.SPEC, 60))
        assert not learner.is_due(None, some, 49)
        assert learner.is_due(None, some, 50)

    def test_it_has_the_newest_results_in_order(self) -> None:
        window = ResultWindow(1000)
        for first, count in ((0, 130), (130, 1500), (1630, 130)):  # one batch exceeds the window
            window.add(oracle_results(labelled(self.SPEC, count, first=first)))
            assert len(window.results()) == min(first + count, 1000)
        newest = window.results()
        assert newest.tasks.task_id.tolist() == list(range(760, 1760))
        expected = tasks_of(self.SPEC, 1000, first=760)
        assert newest.tasks.size.tolist() == expected.size.tolist()
        assert newest.share.tolist() == oracle_share(expected, self.SPEC).tolist()

    def test_redelivered_results_are_ignored(self) -> None:
        window = ResultWindow(1000)
        for first, count in ((0, 30), (0, 30), (10, 10)):
            window.add(oracle_results(labelled(self.SPEC, count, first=first)))
        assert (window.new, len(window)) == (30, 30)
        window.add(oracle_results(labelled(self.SPEC, 20, first=20)))  # half of it is new
        assert (window.new, window.next_task) == (40, 40)
        assert window.results().tasks.task_id.tolist() == list(range(40))

    def test_results_that_come_late_are_put_in_their_place(self) -> None:
        window = ResultWindow(1000)
        for first, count in ((0, 30), (50, 10), (30, 20), (60, 5), (50, 10)):
            window.add(oracle_results(labelled(self.SPEC, count, first=first)))
        assert window.results().tasks.task_id.tolist() == list(range(65))
        assert (window.new, window.next_task) == (65, 65)

    def test_the_newest_before_a_task_do_not_depend_on_what_came_after(self) -> None:
        window = ResultWindow(1000)
        window.add(oracle_results(labelled(self.SPEC, 300)))
        assert window.before(250, 100).tasks.task_id.tolist() == list(range(150, 250))
        assert window.before(50, 100).tasks.task_id.tolist() == list(range(50))


class TestDrift:
    SPEC = spec_of(trees=10)

    def detect(self, detector: DriftDetector, champion: bytes, some: LabelledTasks) -> bool:
        learner = ForestLearner(self.SPEC)
        detector.add(learner.errors(champion, oracle_results(some)).tolist())
        return detector.detected

    def detector(self) -> DriftDetector:
        return DriftDetector(self.SPEC.learning.forest.drift_delta)

    def test_an_unchanged_workload_is_no_drift(self) -> None:
        champion, detector = forest.fit(labelled(self.SPEC, 1000), self.SPEC), self.detector()
        for first in range(1000, 6000, 500):
            assert not self.detect(detector, champion, labelled(self.SPEC, 500, first=first))

    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_a_changed_workload_is_drift(self, seed: int) -> None:
        spec, detector = spec_of(seed, trees=10), self.detector()
        champion = forest.fit(labelled(spec, 1000, preset="gpu_friendly"), spec)
        before = labelled(spec, 500, first=1000, preset="gpu_friendly")
        assert not self.detect(detector, champion, before)
        after = labelled(spec, 49, first=1500, preset="cpu_friendly")
        assert self.detect(detector, champion, after)
        assert detector.take()
        assert not detector.take()

    def test_smaller_errors_are_no_drift(self) -> None:
        """The champion was bad at the tasks before and is good at the tasks now."""
        champion, detector = forest.fit(labelled(self.SPEC, 1000), self.SPEC), self.detector()
        before = labelled(self.SPEC, 500, first=1000)
        self.detect(detector, champion, LabelledTasks(before.tasks, 1 - before.share))
        detector.take()
        assert not self.detect(detector, champion, labelled(self.SPEC, 500, first=1500))
