"""`bandit` with a model: the contract, and what it samples."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from services.scheduler.policies.bandit import Bandit, sampled
from services.trainer.learners.bandit import BanditLearner
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.domain.workload import Cursor, generate
from tests.unit.scheduler.cluster_policy_contract import ClusterPolicyContract
from tests.unit.trainer.own_results import results_of


class WithModel(Bandit):
    """`bandit` with its model, as a worker uses it."""

    def __init__(self, body: bytes) -> None:
        self._model = self.load_model(body)

    def prepare(self, tasks: Tasks, spec: RunSpec) -> Any:
        return self.prepare_with(self._model, tasks, spec)


class TestBandit(ClusterPolicyContract):
    @pytest.fixture
    def make_policy(self, spec: RunSpec) -> Callable[[], Bandit]:
        return lambda: WithModel(self.model(spec.model_dump_json()))

    @staticmethod
    @cache
    def model(spec: str) -> bytes:
        run = RunSpec.model_validate_json(spec)
        tasks, _ = generate(run, Cursor(), 300)
        first = BanditLearner(run).pretrain(tasks)
        assert first is not None
        results = results_of(Bandit(), first.body, run, tasks)
        update = BanditLearner(run).learn(first.body, results, 300, 2)
        return first.body if update is None else update.body


def numbered(count: int) -> Tasks:
    ones = np.ones(count)
    return Tasks(np.arange(count), ones, ones, ones, ones)


def test_samples_have_the_mean_and_the_covariance_of_the_posterior() -> None:
    centre = np.array([1.0, -2.0, 0.5])
    root = np.array([[0.5, 0.0, 0.0], [0.2, 0.3, 0.0], [-0.4, 0.1, 0.6]])
    drawn = sampled(centre, root, 7, numbered(40_000))
    assert drawn.mean(axis=1) == pytest.approx(centre, abs=0.02)
    assert np.cov(drawn) == pytest.approx(root @ root.T, abs=0.02)


def test_a_sample_depends_on_the_seed_and_the_task_alone() -> None:
    centre, root = np.zeros(4), np.tril(np.ones((4, 4)))
    tasks = numbered(100)
    part = Tasks(*(column[40:50] for column in (tasks.task_id, *[tasks.size] * 4)))
    assert np.array_equal(sampled(centre, root, 7, tasks)[:, 40:50], sampled(centre, root, 7, part))
    assert not np.array_equal(sampled(centre, root, 8, tasks), sampled(centre, root, 7, tasks))


def test_the_cheapest_device_by_hand() -> None:
    """0.4 s on a GPU, 1 s on the CPU. A second of a GPU costs 4, so the CPU is cheaper first;
    then its queue of 1 s makes it 2 against 1.6."""
    spec = RunSpec.parse({"cluster": {"gpus": 1}, "learning": {"bandit": {"doubt": 0}}})
    arrays = {"centre": np.array([1.0, 0, 0, 4, 1]), "root": np.eye(5), "scale": np.ones(1)}
    ones = np.ones(2)
    tasks = Tasks(np.arange(2), 1000 * ones, 0.5 * ones, 0 * ones, 0 * ones)
    assert results_of(Bandit(), save(arrays), spec, tasks).share.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "body", [b"", b"garbage", save({"centre": np.ones(5), "root": np.eye(4), "scale": np.ones(1)})]
)
def test_a_model_that_is_none_is_an_error(body: bytes) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011  any: the cache refuses the model
        Bandit().load_model(body)
