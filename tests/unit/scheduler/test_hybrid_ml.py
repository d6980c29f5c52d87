"""`hybrid_ml` with a forest: the policy contract, and how predictions become shares."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from skl2onnx import to_onnx
from sklearn.linear_model import LinearRegression

from services.scheduler.policies.hybrid_ml import HybridMl
from services.trainer.learners import hybrid_ml as forest
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.cluster.observation import Observation
from shared.domain.cluster.virtual_cluster import Cluster
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Tasks
from shared.domain.workload import Cursor, generate
from tests.unit.scheduler.cluster_policy_contract import ClusterPolicyContract


class WithModel(HybridMl):
    """`hybrid_ml` with its model, as a worker uses it."""

    def __init__(self, body: bytes) -> None:
        self._model = self.load_model(body)

    def prepare(self, tasks: Tasks, spec: RunSpec) -> Floats:
        return self.prepare_with(self._model, tasks, spec)


class TestHybridMl(ClusterPolicyContract):
    @pytest.fixture
    def make_policy(self, spec: RunSpec) -> Callable[[], HybridMl]:
        return lambda: WithModel(self.model(spec.model_dump_json()))

    @staticmethod
    @cache
    def model(spec: str) -> bytes:
        run = RunSpec.model_validate_json(spec)
        small = run.learning.forest.model_copy(update={"trees": 10})
        learning = run.learning.model_copy(update={"forest": small})
        run = run.model_copy(update={"learning": learning, "seed": 5})
        tasks, _ = generate(run, Cursor(), 300)
        return forest.fit(forest.label(tasks, run), run)


class TestForestShares:
    @staticmethod
    def shares(weights: list[float], constant: float, tasks: Tasks) -> list[float]:
        """Decisions with a linear model of the five features."""
        line = LinearRegression()
        line.coef_, line.intercept_, line.n_features_in_ = np.array([weights]), [constant], 5
        body = to_onnx(line, np.zeros((1, 5), np.float32), target_opset=17).SerializeToString()
        policy = HybridMl()
        return policy.prepare_with(policy.load_model(body), tasks, RunSpec()).tolist()

    def test_the_model_sees_the_features_in_their_order(self) -> None:
        tasks = Tasks(*(np.array([number]) for number in (0, 80.0, 0.5, 20.0, 0.0)))
        # Size 80, intensity 0.5, memory 20, memory/size 0.25, intensity/memory 0.025.
        for place, (weight, value) in enumerate(
            [(0.01, 0.8), (1.0, 0.5), (0.01, 0.2), (1.0, 0.25), (16.0, 0.4)]
        ):
            weights = [0.0] * 5
            weights[place] = weight
            assert self.shares(weights, 0.0, tasks) == pytest.approx([value])

    def test_predictions_beyond_0_and_1_are_clipped(self) -> None:
        tasks = Tasks(np.arange(3), np.ones(3), np.array([0.0, 0.5, 1.0]), np.ones(3), np.zeros(3))
        # 4 * intensity - 1.5
        assert self.shares([0, 4, 0, 0, 0], -1.5, tasks) == [0.0, 0.5, 1.0]

    def test_a_share_near_0_or_1_is_rounded_to_it(self) -> None:
        predicted = np.array([0.0, 1e-7, 0.09, 0.11, 0.5, 0.89, 0.91, 1 - 1e-7, 1.0])
        count = len(predicted)
        tasks = Tasks(np.arange(count), np.ones(count), predicted, np.ones(count), np.zeros(count))
        shares = self.shares([0, 1, 0, 0, 0], 0.0, tasks)
        assert shares[:3] == [0.0, 0.0, 0.0]
        assert shares[3:6] == pytest.approx([0.11, 0.5, 0.89])
        assert shares[6:] == [1.0, 1.0, 1.0]

    def test_a_task_larger_than_the_gpus_memory_stays_split(self) -> None:
        """A GPU has 8000 MB: 0.95 of 8400 MB fits, all of it does not."""
        memory = np.array([8000.0, 8001.0, 8400.0])
        tasks = Tasks(np.arange(3), np.ones(3), np.full(3, 0.95), memory, np.zeros(3))
        shares = self.shares([0, 1, 0, 0, 0], 0.0, tasks)
        assert shares == [1.0, pytest.approx(0.95), pytest.approx(0.95)]
        none_on_gpu = Tasks(np.arange(3), np.ones(3), np.full(3, 0.05), memory, np.zeros(3))
        assert self.shares([0, 1, 0, 0, 0], 0.0, none_on_gpu) == [0.0, 0.0, 0.0]


class TestChoiceOfGpu:
    @staticmethod
    def devices(spec: RunSpec, count: int) -> list[int]:
        """The GPUs of equal tasks of size 1000 and intensity 0.5 that arrive together."""
        ones = np.ones(count)
        tasks = Tasks(np.arange(count), 1000 * ones, 0.5 * ones, 0 * ones, 0 * ones)
        cluster = Cluster.idle(len(spec.platform))
        view = ClusterView(cluster, Observation(cluster.copy()), tasks, spec, prepared=ones)
        return HybridMl().decide(tasks, view, spec).device.tolist()

    def test_equal_gpus_are_taken_by_the_shortest_queue(self) -> None:
        assert self.devices(RunSpec.parse({"cluster": {"gpus": 3}}), 7) == [0, 1, 2, 0, 1, 2, 0]

    def test_a_fast_gpu_with_a_queue_gives_way_to_a_slow_one(self) -> None:
        """0.1 s on `fast`, 0.4 s on `slow`, both at the highest watts. Scores with weight 1/2:
        q/2 + 0.1 and 0.4, so that `slow` is better once 0.6 s are queued on `fast`."""
        devices = [{"type": "fast", "speed": 4, "watts": 50}, {"type": "slow", "watts": 50}]
        spec = RunSpec.parse({"cluster": {"devices": [*devices, {"type": "cpu", "watts": 50}]}})
        assert self.devices(spec, 9) == [0] * 7 + [1, 0]

    def test_energy_counts_as_much_as_its_weight(self) -> None:
        """`hungry` takes 0.2 s at 400 W, `frugal` 0.4 s at 100 W: scores w * 0.2 + (1 - w) * 0.2
        and w * 0.1 + (1 - w) * 0.4, equal at w = 2/3."""
        devices = [
            {"type": "hungry", "speed": 2, "watts": 400},
            {"type": "frugal", "watts": 100},
            {"type": "cpu"},
        ]
        for weight, device in ((0.6, 0), (0.7, 1)):
            data = {"cluster": {"devices": devices}, "learning": {"energy_weight": weight}}
            assert self.devices(RunSpec.parse(data), 1) == [device]


def linear_onnx(features: int) -> bytes:
    line = LinearRegression()
    line.coef_, line.intercept_ = np.zeros((1, features)), [0.5]
    line.n_features_in_ = features
    return bytes(
        to_onnx(line, np.zeros((1, features), np.float32), target_opset=17).SerializeToString()
    )


@pytest.mark.parametrize("body", [b"", b"garbage", linear_onnx(5)[:-20], linear_onnx(4)])
def test_a_model_that_is_not_a_forest_is_an_error(body: bytes) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011  any: the cache refuses the model
        HybridMl().load_model(body)
