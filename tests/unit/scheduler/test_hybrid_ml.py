"""`hybrid_ml` with a forest: the contract of every policy, and what becomes of a share."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from skl2onnx import to_onnx
from sklearn.linear_model import LinearRegression

from services.scheduler.policies.hybrid_ml import HybridMl
from services.trainer import forest
from shared.spec import RunSpec
from shared.tasks import Tasks
from shared.workload import Cursor, generate
from tests.unit.scheduler.learned_contract import LearnedContract


class TestHybridMl(LearnedContract):
    reference = "hybrid_ml"
    learned = HybridMl

    @staticmethod
    @cache
    def body(spec: str) -> bytes:
        run = RunSpec.model_validate_json(spec)
        small = run.learning.forest.model_copy(update={"trees": 10})
        learning = run.learning.model_copy(update={"forest": small})
        run = run.model_copy(update={"learning": learning, "seed": 5})
        tasks, _ = generate(run, Cursor(), 300)
        return forest.fit(forest.generated(tasks, run), run)


class TestForestShares:
    @staticmethod
    def shares(weights: list[float], constant: float, tasks: Tasks) -> list[float]:
        """Decisions with a linear model of the five features."""
        line = LinearRegression()
        line.coef_, line.intercept_, line.n_features_in_ = np.array([weights]), [constant], 5
        body = to_onnx(line, np.zeros((1, 5), np.float32), target_opset=17).SerializeToString()
        policy = HybridMl()
        return policy.decide_with(policy.open(body), tasks, RunSpec()).gpu_fraction.tolist()

    def test_the_model_sees_the_features_in_their_order(self) -> None:
        tasks = Tasks(*(np.array([number]) for number in (0, 80.0, 0.5, 20.0, 0.0)))
        # Size 80, intensity 0.5, memory 20, memory/size 0.25, intensity/memory 0.025.
        for place, (weight, value) in enumerate(
            [(0.01, 0.8), (1.0, 0.5), (0.01, 0.2), (1.0, 0.25), (16.0, 0.4)]
        ):
            weights = [0.0] * 5
            weights[place] = weight
            assert self.shares(weights, 0.0, tasks) == pytest.approx([value])

    def test_what_lies_beyond_0_and_1_is_cut(self) -> None:
        tasks = Tasks(np.arange(3), np.ones(3), np.array([0.0, 0.5, 1.0]), np.ones(3), np.zeros(3))
        # 4 * intensity - 1.5
        assert self.shares([0, 4, 0, 0, 0], -1.5, tasks) == [0.0, 0.5, 1.0]

    def test_a_task_that_is_nearly_whole_on_one_device_goes_there_as_a_whole(self) -> None:
        said = np.array([0.0, 1e-7, 0.09, 0.11, 0.5, 0.89, 0.91, 1 - 1e-7, 1.0])
        count = len(said)
        tasks = Tasks(np.arange(count), np.ones(count), said, np.ones(count), np.zeros(count))
        found = self.shares([0, 1, 0, 0, 0], 0.0, tasks)
        assert found[:3] == [0.0, 0.0, 0.0]
        assert found[3:6] == pytest.approx([0.11, 0.5, 0.89])
        assert found[6:] == [1.0, 1.0, 1.0]

    def test_a_task_that_no_gpu_has_room_for_stays_split(self) -> None:
        """8000 MB are there: 0.95 of 8400 MB fits, all of it does not."""
        memory = np.array([8000.0, 8001.0, 8400.0])
        tasks = Tasks(np.arange(3), np.ones(3), np.full(3, 0.95), memory, np.zeros(3))
        found = self.shares([0, 1, 0, 0, 0], 0.0, tasks)
        assert found == [1.0, pytest.approx(0.95), pytest.approx(0.95)]
        none_on_gpu = Tasks(np.arange(3), np.ones(3), np.full(3, 0.05), memory, np.zeros(3))
        assert self.shares([0, 1, 0, 0, 0], 0.0, none_on_gpu) == [0.0, 0.0, 0.0]

    def test_a_share_is_neither_explored_nor_bound_to_a_gpu(self) -> None:
        tasks, _ = generate(RunSpec(), Cursor(), 10)
        policy = HybridMl()
        body = TestHybridMl.body(RunSpec().model_dump_json())
        said = policy.decide_with(policy.open(body), tasks, RunSpec())
        assert (said.gpu, said.explored, said.probability) == (None, None, None)


def onnx_of(features: int) -> bytes:
    line = LinearRegression()
    line.coef_, line.intercept_ = np.zeros((1, features)), [0.5]
    line.n_features_in_ = features
    return bytes(
        to_onnx(line, np.zeros((1, features), np.float32), target_opset=17).SerializeToString()
    )


@pytest.mark.parametrize("body", [b"", b"garbage", onnx_of(5)[:-20], onnx_of(4)])
def test_a_model_that_is_no_forests_cannot_be_opened(body: bytes) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011  whichever: the shelf refuses it
        HybridMl().open(body)
