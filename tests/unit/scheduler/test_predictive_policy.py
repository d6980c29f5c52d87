"""`predictive` with a model: the contract, its scores by hand, and what it tries."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from services.scheduler.policies.predictive import NONE, Predictive, Prepared, explorations
from services.trainer.learners.predictive import PredictiveLearner
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.cluster.observation import Observation
from shared.domain.cluster.virtual_cluster import Cluster
from shared.domain.learning.device_prices import DevicePrices, bulk_lane
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.domain.times import seconds
from shared.domain.workload import Cursor, generate
from tests.unit.scheduler.cluster_policy_contract import ClusterPolicyContract

QUICK = {"replay": 300, "candidates": 16, "pretrain_rounds": 2}


class WithModel(Predictive):
    """`predictive` with its model, as a worker uses it."""

    def __init__(self, body: bytes) -> None:
        self._model = self.load_model(body)

    def prepare(self, tasks: Tasks, spec: RunSpec) -> Any:
        return self.prepare_with(self._model, tasks, spec)


class TestPredictive(ClusterPolicyContract):
    @pytest.fixture
    def make_policy(self, spec: RunSpec) -> Callable[[], Predictive]:
        return lambda: WithModel(self.model(spec.model_dump_json()))

    @staticmethod
    @cache
    def model(spec: str) -> bytes:
        run = RunSpec.model_validate_json(spec)
        quick = run.learning.predictive.model_copy(update=QUICK)
        learning = run.learning.model_copy(update={"predictive": quick})
        run = run.model_copy(update={"learning": learning})
        update = PredictiveLearner(run).pretrain(generate(run, Cursor(), 300)[0])
        assert update is not None
        return update.body


def equal_tasks(count: int) -> Tasks:
    """0.4 s on a GPU, 1 s on the CPU; all arrive at once."""
    ones = np.ones(count)
    return Tasks(np.arange(count), 1000 * ones, 0.5 * ones, 0 * ones, 0 * ones)


def decisions(spec: RunSpec, tasks: Tasks, prices: list[float], tried: list[int]) -> Decisions:
    """With the expected times, prices of an average task of 1 s, and types to try."""
    platform, times = spec.platform, seconds(tasks, spec)
    bulk = bulk_lane(platform, spec.learning.predictive.bulk_share)
    priced = DevicePrices.of(np.array(prices), 1.0, platform.type_of, bulk)
    chance = [[0.001, 0.001]] * len(tasks)
    always = np.ones(len(tasks), np.bool_)
    prepared = Prepared(times, times, priced, None, tried, chance, always, most_queued=np.inf)
    cluster = Cluster.idle(len(platform))
    view = ClusterView(cluster, Observation(cluster.copy()), tasks, spec, prepared=prepared)
    return Predictive().decide(tasks, view, spec)


def devices(spec: RunSpec, tasks: Tasks, prices: list[float]) -> list[int]:
    found = decisions(spec, tasks, prices, [NONE] * len(tasks))
    return np.where(found.gpu_fraction > 0, found.device, found.cpu).tolist()


ONE_GPU = {"cluster": {"gpus": 1}}


class TestScores:
    def test_without_prices_it_is_earliest_finish(self) -> None:
        """The GPU ends at 0.4, 0.8, 1.2; the CPU at 1."""
        spec = RunSpec.parse(ONE_GPU)
        assert devices(spec, equal_tasks(4), [0, 0, 0, 0, 0, 0]) == [0, 0, 1, 0]

    def test_a_price_keeps_tasks_from_a_device(self) -> None:
        """The CPU's second costs 1.5, so the third task (0.8 + 0.4) still goes to the GPU."""
        spec = RunSpec.parse(ONE_GPU)
        assert devices(spec, equal_tasks(4), [0, 0.5, 0, 0, 0, 0]) == [0, 0, 0, 1]

    def test_load_makes_the_slow_device_dearer(self) -> None:
        """Third task: 0.8 s are queued, 0.4 a device. GPU 0.8 + 0.4 (1 + 0.4 p), CPU 1 + 0.4 p:
        the GPU is better if p > 0.83."""
        spec = RunSpec.parse(ONE_GPU)
        assert devices(spec, equal_tasks(3), [0, 0, 0.8, 0, 0, 0])[2] == 1
        assert devices(spec, equal_tasks(3), [0, 0, 0.9, 0, 0, 0])[2] == 0

    def test_waiting_has_a_price_that_grows_with_the_task(self) -> None:
        """Second task: GPU 0.4 + 0.4 (1 + 0.4 p), CPU 1: the GPU is worse if p > 1.25."""
        spec = RunSpec.parse(ONE_GPU)
        assert devices(spec, equal_tasks(2), [0, 0, 0, 1.2, 0, 0])[1] == 0
        assert devices(spec, equal_tasks(2), [0, 0, 0, 1.3, 0, 0])[1] == 1

    def test_the_first_devices_of_a_type_are_its_bulk_lane(self) -> None:
        """A surcharge on the bulk lane leaves it for when the others have a queue."""
        spec = RunSpec.parse({"cluster": {"gpus": 4}})
        assert bulk_lane(spec.platform, 0.25).tolist() == [True, False, False, False, False]
        assert bulk_lane(spec.platform, 0.0).tolist() == [False] * 5
        assert devices(spec, equal_tasks(4), [0, 9, 0, 0, 0.5, 0]) == [1, 2, 3, 0]

    def test_a_waiting_queue_in_the_bulk_lane_costs_nothing_more(self) -> None:
        spec = RunSpec.parse({"cluster": {"gpus": 2}})
        assert devices(spec, equal_tasks(4), [0, 9, 0, 100, 0, 0]) == [0, 1, 0, 0]


class TestExploration:
    def test_a_tried_type_is_recorded_with_its_probability(self) -> None:
        spec = RunSpec.parse({"cluster": {"gpus": 2}})
        found = decisions(spec, equal_tasks(3), [0] * 6, [NONE, 1, 0])
        assert np.asarray(found.explored).tolist() == [False, True, True]
        assert found.gpu_fraction.tolist() == [1, 0, 1]
        # What was tried by chance for the last task would have been chosen anyway.
        expected = [0.998 + 0.001, 0.001, 0.998 + 0.001]
        assert np.asarray(found.probability).tolist() == pytest.approx(expected)

    def test_types_that_are_much_slower_are_not_tried(self) -> None:
        rule = {"learning": {"predictive": {"explore": 0.2, "explore_limit": 3}}}
        spec, count = RunSpec.parse(rule), 30_000
        times = np.tile([[1.0, 2.9], [1.0, 3.1], [np.inf, 1.0]], (count // 3, 1))
        tried, chance = explorations(times, equal_tasks(count), spec)
        assert chance[:3].tolist() == [[0.1, 0.1], [0.2, 0.0], [0.0, 0.2]]
        for case, expected in enumerate(chance[:3]):
            of_case = tried[case::3]
            shares = [(of_case == number).mean() for number in (0, 1)]
            assert shares == pytest.approx(expected.tolist(), abs=0.015)

    def test_a_model_of_other_device_types_is_an_error(self) -> None:
        spec = RunSpec.parse({"learning": {"predictive": QUICK}})
        body = TestPredictive.model(spec.model_dump_json())
        other = RunSpec.parse({"cluster": {"devices": [{"type": "cpu"}]}})
        with pytest.raises(ValueError, match="2 device types"):
            Predictive().prepare_with(Predictive().load_model(body), equal_tasks(1), other)


@pytest.mark.parametrize("body", [b"", b"garbage"])
def test_a_model_that_is_none_is_an_error(body: bytes) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011  any: the cache refuses the model
        Predictive().load_model(body)
