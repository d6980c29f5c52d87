"""The learner of `predictive`: its times, its prices, and that it depends on nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save
from sklearn.ensemble import HistGradientBoostingRegressor

from services.scheduler.policies.predictive import Predictive
from services.trainer.learners.predictive import PredictiveLearner, to_onnx, whole_times
from shared.domain.cluster.virtual_cluster import Cluster
from shared.domain.learning import device_prices, price_search
from shared.domain.learning.device_prices import bulk_lane
from shared.domain.learning.objective import charge
from shared.domain.learning.price_search import Replay, replay_cost
from shared.domain.physics import price, whole_seconds
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Tasks, take
from shared.domain.times import real_seconds, seconds
from shared.domain.workload import Cursor, generate
from shared.messages.forest_model import open_model
from shared.messages.time_model import TimeModel
from tests.unit.trainer.own_results import pretraining_tasks, results_of

QUICK = {"replay": 600, "candidates": 16, "pretrain_rounds": 3, "window": 2000}
CURVES = [
    {"kind": kind, "type": type, "sizes": [10, 1000], "seconds": [factor, factor * 100**power]}
    for kind, type, factor, power in (
        ("copy", "cpu", 0.01, 0.5), ("copy", "gpu", 0.03, 0.5),
        ("multiply", "cpu", 0.02, 1.0), ("multiply", "gpu", 0.004, 1.0),
        ("sort", "cpu", 0.015, 0.8), ("sort", "gpu", 0.01, 0.8),
        ("cpu_bound", "cpu", 0.02, 0.7),
    )
]  # fmt: skip


def spec_of(**fields: Any) -> RunSpec:
    learning = {"predictive": QUICK | fields.pop("predictive", {})}
    return RunSpec.parse(
        {"seed": 5, "workload": {"arrival_rate": 20}, "learning": learning} | fields
    )


def first_model(spec: RunSpec, **options: int) -> bytes:
    update = PredictiveLearner(spec).pretrain(pretraining_tasks(spec, **options))
    assert update is not None
    return update.body


class TestTimes:
    def test_a_pretrained_model_predicts_tasks_that_it_has_not_seen(self) -> None:
        spec = spec_of()
        tasks, _ = generate(spec, Cursor(), 2000)
        predicted = TimeModel.open(first_model(spec, count=1000)).seconds(tasks, spec)
        misses = np.log(predicted / seconds(tasks, spec))
        assert (np.sqrt((misses**2).mean(axis=0)) < 0.06).all()

    def test_it_learns_from_results_what_the_platform_does_not_expect(self) -> None:
        """Pre-training saw tasks at the expected speed; in the results both types are slower."""
        spec = spec_of()
        tasks, _ = generate(spec, Cursor(), 2000)
        model = first_model(spec)
        results = results_of(Predictive(), model, spec, tasks)
        results.time[:] *= np.where(results.gpu_time > 0, 3.0, 1.5)
        update = PredictiveLearner(spec).learn(model, results, 500, 2)
        assert update is not None
        unseen, _ = generate(spec.model_copy(update={"seed": 77}), Cursor(), 1000)
        predicted = TimeModel.open(update.body).seconds(unseen, spec)
        factor = np.median(predicted / seconds(unseen, spec), axis=0)
        assert factor[0] == pytest.approx(3.0, rel=0.05)
        assert factor[1] == pytest.approx(1.5, rel=0.3)  # some pre-training tasks are still used

    def test_tasks_larger_than_any_seen_follow_the_line(self) -> None:
        """Trees alone would say of all of them what they know of the largest."""
        spec = spec_of()
        sizes = np.array([20_000.0, 100_000.0])
        tasks = Tasks(np.arange(2), sizes, np.full(2, 0.5), np.full(2, 800.0), np.zeros(2))
        predicted, expected = (
            TimeModel.open(first_model(spec)).seconds(tasks, spec),
            seconds(tasks, spec),
        )
        assert predicted[:, 1] == pytest.approx(expected[:, 1], rel=0.1)  # of the CPU
        assert predicted[1, 0] > 2 * predicted[0, 0]

    def test_the_trees_are_those_of_scikit_learn(self) -> None:
        random = np.random.default_rng(0)
        x = random.normal(size=(500, 5)).astype(np.float32)
        grown = [
            HistGradientBoostingRegressor(max_iter=9, max_leaf_nodes=6).fit(x, x[:, column] ** 2)
            for column in (1, 4)
        ]
        # For two types: three common columns, then two of each type, type by type.
        features = np.column_stack([x[:, :3], x[:, 3], x[:, 3], x[:, 4], x[:, 4]])
        session = open_model(to_onnx([*grown], 7))
        (found,) = session.run(None, {"features": features})
        assert found[:, 0] == pytest.approx(grown[0].predict(x), abs=1e-4)
        assert found[:, 1] == pytest.approx(grown[1].predict(x), abs=1e-4)

    def test_only_whole_tasks_show_the_time_of_a_type(self) -> None:
        """By hand: on a GPU, on the CPU, split, and failed."""
        spec = spec_of()
        results = results_of(Predictive(), None, spec, generate(spec, Cursor(), 4)[0])
        results.gpu_time[:], results.cpu_time[:] = [2, 0, 1, 1], [0, 3, 1, 0]
        results.device[:], results.cpu[:], results.failed[:] = 1, 4, [False, False, False, True]
        results.time[:] = [2, 3, 2, 1]
        type, time = whole_times(results, spec)
        assert type.tolist() == [0, 1, -1, -1]
        assert time[:2].tolist() == [2, 3]


class TestKinds:
    @staticmethod
    def spec(kinds: list[str]) -> RunSpec:
        devices = [{"type": "gpu", "count": 2}, {"type": "cpu", "count": 2}]
        workload = {"arrival_rate": 5, "kinds": [{"kind": kind} for kind in kinds]}
        return spec_of(
            cluster={"devices": devices}, physics={"measured": CURVES}, workload=workload
        )

    def test_each_kind_has_times_of_its_own_on_each_type(self) -> None:
        spec = self.spec(["copy", "multiply", "sort"])
        tasks, _ = generate(spec, Cursor(), 1000)
        predicted = TimeModel.open(first_model(spec)).seconds(tasks, spec)
        misses = np.log(predicted / seconds(tasks, spec))
        assert np.sqrt((misses**2).mean()) < 0.1

    def test_a_kind_never_seen_is_tried_and_then_known(self) -> None:
        known, spec = self.spec(["copy", "multiply"]), self.spec(["copy", "multiply", "sort"])
        model = first_model(known)
        tasks, _ = generate(spec, Cursor(), 1500)
        results = results_of(Predictive(), model, spec, tasks)
        update = PredictiveLearner(spec).learn(model, results, 1500, 2)
        assert update is not None
        sort = np.array([kind == "sort" for kind in tasks.kind])

        def error(body: bytes) -> float:
            predicted = TimeModel.open(body).seconds(tasks, spec)[sort]
            return float(np.abs(np.log(predicted / seconds(tasks, spec)[sort])).mean())

        assert error(update.body) < 0.15
        assert error(update.body) < error(model) / 2

    def test_what_a_type_cannot_run_is_not_predicted(self) -> None:
        spec = self.spec(["copy", "cpu_bound"])
        tasks, _ = generate(spec, Cursor(), 200)
        predicted = TimeModel.open(first_model(spec)).seconds(tasks, spec)
        assert np.array_equal(np.isinf(predicted), np.isinf(seconds(tasks, spec)))
        results = results_of(Predictive(), first_model(spec), spec, tasks)
        assert not results.failed.any()


def brute_force(spec: RunSpec, tasks: Tasks, prices: Floats, real: Floats) -> tuple[float, float]:
    """Mean turnaround and mean joules: scores from their definition, queues by the virtual
    cluster."""
    platform, expected = spec.platform, whole_seconds(tasks, spec, seconds(tasks, spec))
    bulk = bulk_lane(platform, spec.learning.predictive.bulk_share)
    types, scale = len(platform.types), float(expected.min(axis=1).mean())
    load_price, wait_price, bulk_price, bulk_load = prices[types:]
    cluster, turnaround, joules = Cluster.idle(len(platform)), [], []
    for row, now in enumerate(tasks.arrival_time.tolist()):
        wait = [max(free - now, 0.0) for free in cluster.free]
        load = sum(wait) / len(wait) / scale
        scores = []
        for device, type in enumerate(platform.type_of.tolist()):
            price = prices[type] + (bulk_price if bulk[device] else 0)
            price += load * (bulk_load if bulk[device] else load_price)
            price += 0 if bulk[device] else wait[device] / scale * wait_price
            scores.append(wait[device] + expected[row, type] * (1 + price))
        best = int(np.argmin(scores))
        length = float(real[row, platform.type_of[best]])
        start = cluster.place(best, now, length)
        turnaround.append(start + length - now)
        joules.append(length * platform.watts[platform.type_of[best]])
    return float(np.mean(turnaround)), float(np.mean(joules))


class TestPrices:
    @pytest.mark.parametrize("noise", [0.0, 0.4])
    def test_a_replay_is_what_the_virtual_cluster_does(self, noise: float) -> None:
        energy = 0.16  # 0.002 for each joule: a GPU and the CPU draw 80 W together
        spec = spec_of(
            physics={"noise": noise}, workload={"arrival_rate": 26}, objective={"energy": energy}
        )
        tasks, _ = generate(spec, Cursor(), 400)
        expected = whole_seconds(tasks, spec, seconds(tasks, spec))
        real = whole_seconds(tasks, spec, real_seconds(tasks, spec))
        random = np.random.default_rng(1)
        prices = device_prices.limited(
            device_prices.start(2) + device_prices.steps(2) * random.standard_normal((5, 6))
        )
        platform = spec.platform
        bulk = bulk_lane(platform, 0.25)
        for each in (np.zeros(2), charge(spec)):
            replay = Replay.of(tasks.arrival_time, expected, real, platform.type_of, bulk, each)
            found, _ = replay_cost(replay, prices)
            for cost, candidate in zip(found, prices, strict=True):
                turnaround, joules = brute_force(spec, tasks, candidate, real)
                weight = energy / 80 if each.any() else 0.0
                assert cost == pytest.approx(turnaround + weight * joules, rel=1e-9)

    def test_without_prices_it_is_earliest_finish(self) -> None:
        spec = spec_of()
        tasks, _ = generate(spec, Cursor(), 500)
        times = whole_seconds(tasks, spec, seconds(tasks, spec))
        bulk, platform = bulk_lane(spec.platform, 0.25), spec.platform
        replay = Replay.of(tasks.arrival_time, times, times, platform.type_of, bulk, np.zeros(2))
        results = results_of(Predictive(), None, spec, tasks)
        (cost, _) = replay_cost(replay, np.zeros((1, 6)))
        assert cost == pytest.approx([results.turnaround.mean()])

    def test_a_search_is_never_worse_in_its_replay_than_where_it_began(self) -> None:
        spec = spec_of(workload={"arrival_rate": 26})
        tasks, _ = generate(spec, Cursor(), 1000)
        times = whole_seconds(tasks, spec, seconds(tasks, spec))
        bulk, platform = bulk_lane(spec.platform, 0.25), spec.platform
        replay = Replay.of(tasks.arrival_time, times, times, platform.type_of, bulk, np.zeros(2))
        steps = device_prices.steps(2)
        for start in (np.zeros(6), device_prices.start(2)):
            found = price_search.search(
                replay, start, steps, 0.4 * steps, rounds=4, candidates=32, speed=0.5,
                random=np.random.default_rng(3),
            )  # fmt: skip
            assert found.cost <= min(found.cost_before, found.cost_without)
            assert found.cost < 0.9 * found.cost_without

    @pytest.mark.parametrize("memory", [0.0, 1.0])
    def test_pretraining_on_other_tasks_does_no_harm(self, memory: float) -> None:
        spec = spec_of(workload={"arrival_rate": 20})
        update = PredictiveLearner(spec).pretrain(pretraining_tasks(spec))
        assert update is not None
        tasks, _ = generate(spec, Cursor(), 2000)
        # A thousand times as long, at the same load.
        longer = replace(
            tasks,
            size=100 * tasks.size,
            memory_required=memory * tasks.memory_required,
            arrival_time=1000 * tasks.arrival_time,
        )
        by_eft = results_of(Predictive(), None, spec, longer).turnaround.mean()
        assert results_of(Predictive(), update.body, spec, longer).turnaround.mean() < 1.1 * by_eft
        # With prices that were found for short tasks and queues.
        unlimited = replace(TimeModel.open(update.body), longest=np.inf, most_queued=np.inf).pack()
        assert results_of(Predictive(), unlimited, spec, longer).turnaround.mean() > 2 * by_eft

    def test_models_of_older_versions_have_no_limits(self) -> None:
        spec = spec_of()
        update = PredictiveLearner(spec).pretrain(pretraining_tasks(spec))
        assert update is not None
        new = ("low", "high", "off", "longest", "most_queued")
        arrays = {name: each for name, each in load(update.body).items() if name not in new}
        older = TimeModel.open(save(arrays))
        assert older.longest == older.most_queued == np.inf
        tasks, _ = generate(spec, Cursor(), 100)
        times = TimeModel.open(update.body).seconds(tasks, spec)
        assert np.array_equal(older.seconds(tasks, spec), times)

    def test_energy_in_the_objective_saves_joules(self) -> None:
        watts = [{"type": "gpu", "count": 4, "watts": 400}, {"type": "cpu", "watts": 30}]
        used = []
        for energy in (0.0, 4.3):  # 0.01 for each joule: the strongest two draw 430 W
            spec = spec_of(
                cluster={"devices": watts},
                workload={"arrival_rate": 8},
                objective={"energy": energy},
            )
            tasks, _ = generate(spec, Cursor(), 2000)
            update = PredictiveLearner(spec).pretrain(pretraining_tasks(spec))
            assert update is not None
            used.append(results_of(Predictive(), update.body, spec, tasks).energy.sum())
        assert used[1] < 0.9 * used[0]


def test_to_learn_twice_gives_the_same_bytes() -> None:
    spec = spec_of(physics={"noise": 0.3})
    tasks, _ = generate(spec, Cursor(), 1000)
    model = first_model(spec)
    assert first_model(spec) == model
    results = results_of(Predictive(), model, spec, tasks)
    once = PredictiveLearner(spec).learn(model, results, 500, 2)
    learner = PredictiveLearner(spec)
    learner.learn(model, results.all_but_last(300), 200, 2)  # has learned something else before
    again = learner.learn(model, results, 500, 2)
    assert once is not None
    assert again is not None
    assert once.body == again.body
    other = learner.learn(model, results, 500, 3)
    assert other is not None
    assert other.body != once.body


def test_errors_are_how_far_the_logarithms_are_apart() -> None:
    spec = spec_of(physics={"noise": 0.3})
    tasks, _ = generate(spec, Cursor(), 500)
    model = first_model(spec)
    results = results_of(Predictive(), model, spec, tasks)
    errors = PredictiveLearner(spec).errors(model, results)
    assert errors is not None
    apart = np.abs(np.log(results.time / results.expected_time))
    assert errors == pytest.approx(apart, abs=1e-6)


def test_it_can_begin_without_pretraining() -> None:
    spec = spec_of()
    nothing = take(generate(spec, Cursor(), 1)[0], slice(0, 0))
    learner = PredictiveLearner(spec)
    assert learner.pretrain(nothing) is None
    tasks, _ = generate(spec, Cursor(), 1000)
    update = learner.learn(b"", results_of(Predictive(), None, spec, tasks), 1000, 1)
    assert update is not None
    found = results_of(Predictive(), update.body, spec, tasks)
    price_of_all = price(tasks, found.share, spec, found.device, found.cpu)
    assert found.expected_time == pytest.approx(price_of_all.time, rel=1.0)


def test_it_beats_earliest_finish_under_load() -> None:
    spec = spec_of(workload={"arrival_rate": 26}, predictive={"replay": 2000, "candidates": 32})
    tasks, _ = generate(spec, Cursor(), 6000)
    eft = results_of(Predictive(), None, spec, tasks).turnaround.mean()
    learned = results_of(Predictive(), first_model(spec, count=1000), spec, tasks)
    assert learned.turnaround.mean() < 0.8 * eft
