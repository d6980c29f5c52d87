"""The forest: what it sees, how well it imitates the Oracle, when it is refitted and shipped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from services.trainer import forest
from services.trainer.forest import ForestLearner, Labelled
from shared.features import FOREST_FEATURES, forest_features
from shared.spec import RunSpec
from shared.tasks import Floats, Tasks
from shared.workload import Cursor, generate

OVERLAPPED = {"physics": {"split": "overlapped"}}


def spec_of(seed: int = 1, trees: int = 100, **more: Any) -> RunSpec:
    return RunSpec.parse({"seed": seed, "learning": {"forest": {"trees": trees}}, **more})


def tasks_of(spec: RunSpec, count: int, *, first: int = 0, preset: str = "hpc") -> Tasks:
    """Tasks with the ids from `first` on; those of another id are others."""
    run = RunSpec.parse({"seed": spec.seed, "workload": {"preset": preset}})
    return generate(run, Cursor(generated=first, next_task=first), count)[0]


def seconds(tasks: Tasks, share: Floats, spec: RunSpec) -> Floats:
    """Execution times, from the formulas and not from the arena's own physics."""
    on_cpu = (tasks.size / 1000) ** 1.5 / (tasks.compute_intensity + 0.5)
    on_gpu = on_cpu / (1 + 3 * tasks.compute_intensity) + tasks.memory_required / 16000
    share = np.where(share * tasks.memory_required > 8000, 0.0, share)
    parts = share * on_gpu, (1 - share) * on_cpu
    return np.maximum(*parts) if spec.physics.split == "overlapped" else sum(parts)


def oracle_share(tasks: Tasks, spec: RunSpec) -> Floats:
    """The fastest of a thousand shares, without any thought."""
    grid = np.linspace(0, 1, 1001)
    times = np.stack([seconds(tasks, np.full(len(tasks), share), spec) for share in grid])
    return grid[times.argmin(axis=0)]


def labelled(spec: RunSpec, count: int, *, first: int = 0, preset: str = "hpc") -> Labelled:
    tasks = tasks_of(spec, count, first=first, preset=preset)
    return Labelled(tasks, oracle_share(tasks, spec))


def always(share: float, spec: RunSpec) -> bytes:
    """A model that says the same of every task."""
    tasks = tasks_of(spec, 10)
    return forest.fit(Labelled(tasks, np.full(10, share)), spec)


def total(body: bytes, of: Labelled, spec: RunSpec) -> float:
    """Total time of a model's shares, slivers of less than 0.1 left out, over the Oracle's."""
    raw = forest.predict(forest.open_model(body), forest_features(of.tasks))
    shares = np.where(raw < 0.1, 0.0, np.where(raw > 0.9, 1.0, raw))
    return float(seconds(of.tasks, shares, spec).sum() / seconds(of.tasks, of.share, spec).sum())


class TestFeatures:
    def test_they_are_in_their_order(self) -> None:
        tasks = Tasks(
            task_id=np.array([3, 4]),
            size=np.array([200.0, 4000.0]),
            compute_intensity=np.array([0.5, 0.25]),
            memory_required=np.array([800.0, 50.0]),
            arrival_time=np.zeros(2),
        )
        found = forest_features(tasks)
        assert FOREST_FEATURES == (
            "size",
            "compute_intensity",
            "memory_required",
            "memory_per_size",
            "intensity_per_memory",
        )
        assert found.dtype == np.float32
        assert found[0].tolist() == pytest.approx([200, 0.5, 800, 4, 0.000625])
        assert found[1].tolist() == pytest.approx([4000, 0.25, 50, 0.0125, 0.005])

    def test_a_task_without_memory_has_finite_ones(self) -> None:
        tasks = Tasks(np.array([0]), *(np.array([value]) for value in (10.0, 1.0, 0.0, 0.0)))
        assert forest_features(tasks).tolist() == [[10, 1, 0, 0, 1000]]


class TestFit:
    @pytest.mark.parametrize("seed", [1, 2])
    def test_1000_tasks_bring_it_within_2_percent_of_the_oracle(self, seed: int) -> None:
        spec = spec_of(seed)
        body = forest.fit(labelled(spec, 1000), spec)
        assert 1 <= total(body, labelled(spec, 3000, first=1000), spec) < 1.02

    @pytest.mark.parametrize("seed", [1, 2])
    def test_and_within_5_percent_where_tasks_are_split(self, seed: int) -> None:
        spec = spec_of(seed, **OVERLAPPED)
        body = forest.fit(labelled(spec, 1000), spec)
        unseen = labelled(spec, 3000, first=1000)
        assert 1 <= total(body, unseen, spec) < 1.05
        # It is no question of all or nothing there.
        assert ((unseen.share > 0.05) & (unseen.share < 0.95)).mean() > 0.9

    def test_the_shipped_model_says_what_scikit_learn_says(self) -> None:
        spec = spec_of(trees=20, **OVERLAPPED)
        known, unseen = labelled(spec, 500), tasks_of(spec, 2000, first=500)
        same = make_pipeline(StandardScaler(), RandomForestRegressor(20, random_state=spec.seed))
        same.fit(forest_features(known.tasks), known.share)
        shipped = forest.open_model(forest.fit(known, spec))
        found = forest.predict(shipped, forest_features(unseen))
        difference = np.abs(found - same.predict(forest_features(unseen)))
        # A feature that lies on a threshold may fall to the other side in 32 bits.
        assert np.quantile(difference, 0.99) < 1e-5
        assert difference.max() < 0.1

    def test_the_same_window_and_seed_give_the_same_bytes(self) -> None:
        spec = spec_of(trees=5)
        assert forest.fit(labelled(spec, 200), spec) == forest.fit(labelled(spec, 200), spec)
        assert forest.fit(labelled(spec, 200), spec) != forest.fit(labelled(spec, 201), spec)

    def test_the_labels_of_generated_tasks_are_the_oracles(self) -> None:
        for spec in (spec_of(), spec_of(**OVERLAPPED)):
            found = forest.generated(tasks_of(spec, 300), spec)
            best = seconds(found.tasks, found.share, spec)
            assert (
                best <= seconds(found.tasks, oracle_share(found.tasks, spec), spec) + 1e-9
            ).all()

    def test_shares_that_a_model_puts_beyond_0_and_1_are_cut(self) -> None:
        spec = spec_of(trees=1)
        features = forest_features(tasks_of(spec, 3))
        for wild, cut in ((1.7, 1.0), (-0.4, 0.0)):
            assert forest.predict(forest.open_model(always(wild, spec)), features).tolist() == (
                [cut] * 3
            )


class TestJudge:
    SPEC = spec_of(trees=10)

    def test_the_first_one_ships(self) -> None:
        verdict = forest.judge(labelled(self.SPEC, 200), None, self.SPEC)
        assert (verdict.ships, verdict.champion) == (True, None)
        assert verdict.challenger >= 1

    def test_an_equal_one_ships(self) -> None:
        window = labelled(self.SPEC, 200)
        champion = forest.fit(window.without_last(25), self.SPEC)
        verdict = forest.judge(window, champion, self.SPEC)
        assert verdict.ships
        assert verdict.champion == verdict.challenger
        assert verdict.body == champion
        assert verdict.reason.startswith("not worse: ")

    def test_a_better_one_ships(self) -> None:
        verdict = forest.judge(labelled(self.SPEC, 400), always(0.5, self.SPEC), self.SPEC)
        assert verdict.ships
        assert verdict.champion is not None
        assert verdict.challenger < verdict.champion

    def test_a_worse_one_is_kept_back(self) -> None:
        """The champion knows the unseen results by heart; the challenger has learned nonsense."""
        window = labelled(self.SPEC, 200)
        champion = forest.fit(labelled(self.SPEC, 1000), self.SPEC)
        misled = np.concatenate([1 - window.share[:-25], window.share[-25:]])
        verdict = forest.judge(Labelled(window.tasks, misled), champion, self.SPEC)
        assert not verdict.ships
        assert verdict.champion is not None
        assert verdict.challenger > verdict.champion
        assert verdict.reason.startswith("worse: ")

    @pytest.mark.parametrize(("tolerance", "ships"), [(0.0, False), (10.0, True)])
    def test_how_much_worse_it_may_be_is_a_field_of_the_spec(
        self, tolerance: float, ships: bool
    ) -> None:
        rule = {"trees": 10, "tolerance": tolerance}
        spec = RunSpec.parse({"seed": 1, "learning": {"forest": rule}})
        window = labelled(spec, 200)
        champion = forest.fit(labelled(spec, 1000), spec)
        misled = np.concatenate([1 - window.share[:-25], window.share[-25:]])
        assert forest.judge(Labelled(window.tasks, misled), champion, spec).ships is ships

    def test_it_is_fitted_on_all_but_the_newest_and_both_are_judged_on_those(self) -> None:
        window, champion = labelled(self.SPEC, 300), always(1.0, self.SPEC)
        verdict = forest.judge(window, champion, self.SPEC)
        known = verdict.trained_on.tasks
        assert (len(known), known.task_id[0], known.task_id[-1]) == (275, 0, 274)
        newest = Labelled(tasks_of(self.SPEC, 25, first=275), window.share[275:])
        assert verdict.challenger == pytest.approx(total(verdict.body, newest, self.SPEC))
        # All on the GPU, by hand.
        everything = seconds(newest.tasks, np.ones(25), self.SPEC).sum()
        best = seconds(newest.tasks, newest.share, self.SPEC).sum()
        assert verdict.champion == pytest.approx(everything / best)
        assert f"{verdict.challenger:.4f} against {verdict.champion:.4f}" in verdict.reason
        assert verdict.reason.endswith("on the newest 25 results")


def fed(learner: ForestLearner, results: Labelled, champion: bytes | None = None) -> None:
    learner.add(results, None if champion is None else forest.open_model(champion))


class TestLearner:
    SPEC = spec_of(trees=10)

    def batch(self, first: int, count: int) -> Labelled:
        return labelled(self.SPEC, count, first=first)

    def test_results_push_out_what_was_known_before_them(self) -> None:
        spec = RunSpec.parse({"learning": {"forest": {"window": 200}}})
        learner = ForestLearner(spec)
        learner.begin_with(forest.generated(tasks_of(spec, 300, first=5000), spec))
        assert (learner.fresh, learner.due()) == (0, False)
        fed(learner, labelled(spec, 60))
        assert learner.window is not None
        assert learner.window.tasks.task_id.tolist() == [-1] * 140 + list(range(60))
        assert learner.due()
        fed(learner, labelled(spec, 200, first=60))
        assert learner.window.tasks.task_id.tolist() == list(range(60, 260))

    def test_a_fit_is_due_after_50_results(self) -> None:
        learner = ForestLearner(self.SPEC)
        assert not learner.due()
        fed(learner, self.batch(0, 49))
        assert not learner.due()
        fed(learner, self.batch(49, 1))
        assert learner.due()

    def test_after_a_fit_the_next_is_due_50_results_later(self) -> None:
        learner = ForestLearner(self.SPEC)
        fed(learner, self.batch(0, 120))
        learner.begin()
        assert not learner.due()
        fed(learner, self.batch(120, 49))
        assert not learner.due()
        fed(learner, self.batch(169, 1))
        assert learner.due()

    def test_results_that_come_during_a_fit_count_for_one_next_fit(self) -> None:
        learner = ForestLearner(self.SPEC)
        fed(learner, self.batch(0, 60))
        window, drifted = learner.begin()
        assert (len(window), drifted) == (60, False)
        for first in range(60, 400, 20):
            fed(learner, self.batch(first, 20))
        assert len(window) == 60  # what is being fitted does not change
        window, _ = learner.begin()
        assert window.tasks.task_id.tolist() == list(range(400))
        assert not learner.due()

    def test_there_is_no_fit_without_enough_to_judge_it_by(self) -> None:
        rule = {"trees": 10, "retrain_every": 10, "judge_on": 30}
        learner = ForestLearner(RunSpec.parse({"seed": 1, "learning": {"forest": rule}}))
        fed(learner, self.batch(0, 59))
        assert not learner.due()
        fed(learner, self.batch(59, 1))
        assert learner.due()

    def test_the_window_has_the_newest_1000_results(self) -> None:
        learner = ForestLearner(self.SPEC)
        for first in range(0, 1300, 130):
            fed(learner, self.batch(first, 130))
            assert len(learner.window or ()) == min(first + 130, 1000)
        window, _ = learner.begin()
        assert window.tasks.task_id.tolist() == list(range(300, 1300))
        expected = tasks_of(self.SPEC, 1000, first=300)
        assert window.tasks.size.tolist() == expected.size.tolist()
        assert window.share.tolist() == oracle_share(expected, self.SPEC).tolist()

    def test_a_batch_larger_than_the_window_is_cut_to_its_newest(self) -> None:
        learner = ForestLearner(self.SPEC)
        fed(learner, self.batch(0, 1500))
        window, _ = learner.begin()
        assert window.tasks.task_id.tolist() == list(range(500, 1500))

    def test_results_that_come_again_change_nothing(self) -> None:
        learner = ForestLearner(self.SPEC)
        fed(learner, self.batch(0, 30))
        fed(learner, self.batch(0, 30))
        fed(learner, self.batch(10, 10))
        assert (learner.fresh, learner.due()) == (30, False)
        fed(learner, self.batch(20, 20))  # half of it is new
        assert learner.fresh == 40
        assert learner.window is not None
        assert learner.window.tasks.task_id.tolist() == list(range(40))

    def test_a_stream_that_stays_as_it_is_does_not_drift(self) -> None:
        champion = forest.fit(self.batch(0, 1000), self.SPEC)
        learner = ForestLearner(self.SPEC)
        for first in range(1000, 6000, 50):
            fed(learner, self.batch(first, 50), champion)
            assert not learner.drifted

    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_a_shift_is_noticed_and_asks_for_a_fit_at_once(self, seed: int) -> None:
        spec = spec_of(seed, trees=10)
        champion = forest.fit(labelled(spec, 1000, preset="gpu_friendly"), spec)
        learner = ForestLearner(spec)
        fed(learner, labelled(spec, 500, first=1000, preset="gpu_friendly"), champion)
        assert not learner.drifted
        learner.begin()
        fed(learner, labelled(spec, 49, first=1500, preset="cpu_friendly"), champion)
        assert learner.drifted
        assert learner.due()  # though there are no 50 new results yet
        _, drifted = learner.begin()
        assert drifted
        assert not learner.due()

    def test_a_change_for_the_better_asks_for_nothing(self) -> None:
        """The champion was bad at what came before and is good at what comes now."""
        champion = forest.fit(self.batch(0, 1000), self.SPEC)
        learner = ForestLearner(self.SPEC)
        before = self.batch(1000, 500)
        fed(learner, Labelled(before.tasks, 1 - before.share), champion)
        learner.begin()
        fed(learner, self.batch(1500, 500), champion)
        assert not learner.drifted

    def test_without_a_model_there_is_nothing_to_drift_from(self) -> None:
        learner = ForestLearner(self.SPEC)
        fed(learner, labelled(self.SPEC, 500, preset="gpu_friendly"))
        fed(learner, labelled(self.SPEC, 500, first=500, preset="cpu_friendly"))
        assert not learner.drifted
