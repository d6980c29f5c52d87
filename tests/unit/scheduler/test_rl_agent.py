"""`rl_agent` with a network: the contract of every policy, and what its rules say."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from services.scheduler.policies.rl_agent import RlAgent, epsilon, take_turns, values
from services.scheduler.policy import Policy
from shared.spec import RunSpec
from shared.tasks import Decisions, Tasks
from shared.workload import Cursor, generate
from tests.unit.scheduler.learned_contract import LearnedContract
from tests.unit.scheduler.policy_contract import same, stretch


def network(
    gpus: int, *, hidden: int = 8, exploration: float = 0.0, seed: int = 1
) -> dict[str, Any]:
    """A dueling network with random weights."""
    random = np.random.default_rng(seed)

    def layer(name: str, inputs: int, outputs: int) -> dict[str, Any]:
        return {
            f"{name}.weight": random.normal(size=(outputs, inputs)).astype(np.float32),
            f"{name}.bias": random.normal(size=outputs).astype(np.float32),
        }

    return {
        "centre": np.array([5.3, 0.5, 6.7], np.float32),
        "spread": np.array([0.8, 0.3, 1.3], np.float32),
        **layer("body.0", 3, hidden),
        **layer("body.2", hidden, hidden),
        **layer("value", hidden, 1),
        **layer("advantage", hidden, gpus + 1),
        "scale": np.array([1.0]),
        "exploration": np.array([exploration]),
    }


def network_of(worth: list[float], exploration: float = 0.0) -> dict[str, Any]:
    """A network that finds every task worth the same: the CPU, then the GPUs."""
    weights = network(len(worth) - 1, exploration=exploration)
    for name in ("value", "advantage"):
        weights[f"{name}.weight"][:] = 0
    mean = sum(worth) / len(worth)
    weights["value.bias"][:] = mean
    weights["advantage.bias"][:] = np.array(worth) - mean
    return weights


class TestRlAgent(LearnedContract):
    reference = "rl_agent"
    learned = RlAgent

    @staticmethod
    @cache
    def body(spec: str) -> bytes:
        return bytes(save(network(RunSpec.model_validate_json(spec).cluster.gpus)))

    def test_a_task_is_placed_as_a_whole(self, policy: Policy, tasks: Tasks, spec: RunSpec) -> None:
        assert set(policy.decide(tasks, spec).gpu_fraction.tolist()) <= {0.0, 1.0}

    def test_the_size_of_batches_does_not_matter_for_exploration_either(
        self, policy: Policy, tasks: Tasks, spec: RunSpec
    ) -> None:
        whole = policy.decide(tasks, spec)
        part = policy.decide(stretch(tasks, 400, 700), spec)
        assert np.array_equal(part.explored, whole.explored[400:700])
        assert np.array_equal(part.probability, whole.probability[400:700])


def numbered(count: int, first: int = 0) -> Tasks:
    """Tasks that differ by nothing but their number."""
    one = np.ones(count)
    return Tasks(np.arange(first, first + count), 200 * one, 0.5 * one, 800 * one, 0 * one)


def agent_spec(*, seed: int = 42, gpus: int = 4, pretrain: int = 1000, **agent: Any) -> RunSpec:
    learning = {"pretrain_tasks": pretrain, "agent": agent}
    return RunSpec.parse({"seed": seed, "cluster": {"gpus": gpus}, "learning": learning})


def exploring(share: float, **more: Any) -> RunSpec:
    """A run in which every task is explored with that probability, early or late."""
    return agent_spec(epsilon_start=share, epsilon_end=share, **more)


def decided(weights: dict[str, Any], tasks: Tasks, spec: RunSpec) -> Decisions:
    agent = RlAgent()
    return agent.decide_with(agent.open(bytes(save(weights))), tasks, spec)


class TestValues:
    def test_they_are_the_networks_by_hand(self) -> None:
        weights = {
            "centre": np.array([1.0, 0.0, 2.0]),
            "spread": np.array([2.0, 1.0, 0.5]),
            "body.0.weight": np.array([[1.0, 0, 0], [0, 1, -1]]),
            "body.0.bias": np.array([0.5, 0.0]),
            "body.2.weight": np.array([[2.0, 1], [-1, 0]]),
            "body.2.bias": np.array([0.0, 3.0]),
            "value.weight": np.array([[1.0, 1.0]]),
            "value.bias": np.array([-4.0]),
            "advantage.weight": np.array([[1.0, 0], [0, 1], [0, 0]]),
            "advantage.bias": np.array([0.0, 0.0, 2.5]),
        }
        # State (3, 0.5, 2.5) is seen as (1, 0.5, 1); first layer (1.5, -0.5) -> (1.5, 0); second
        # (3, 1.5); value 0.5; advantages (3, 1.5, 2.5), 7/3 on average.
        found = values(weights, np.array([[3.0, 0.5, 2.5]], np.float32))
        assert found[0].tolist() == pytest.approx([3.5 - 7 / 3, 2.0 - 7 / 3, 3.0 - 7 / 3])

    def test_the_state_is_log_size_intensity_and_log_memory(self) -> None:
        weights = network(1, hidden=3)
        weights["centre"][:], weights["spread"][:] = 0, 1
        for name in ("body.0", "body.2"):
            weights[f"{name}.weight"][:], weights[f"{name}.bias"][:] = np.eye(3), 0
        # The GPU wins if log size + intensity > log(1 + memory).
        weights["advantage.weight"][:] = [[0, 0, 1], [1, 1, 0]]
        weights["advantage.bias"][:] = 0
        size, memory = np.array([20.0, 20.0, 20.0]), np.array([18.0, 20.0, 40.0])
        intensity = np.array([0.0, 0.1, 0.1])
        # log 20 = 2.996; log 19 = 2.944, log 21 = 3.045 < 3.096, log 41 = 3.714.
        tasks = Tasks(np.arange(3), size, intensity, memory, np.zeros(3))
        said = decided(weights, tasks, exploring(0.0, gpus=1))
        assert said.gpu_fraction.tolist() == [1, 1, 0]


class TestBestAction:
    def test_the_cpu_is_taken_where_it_is_worth_more(self) -> None:
        said = decided(network_of([-0.5, -1, -1, -1, -1]), numbered(8), exploring(0.0))
        assert said.gpu_fraction.tolist() == [0] * 8
        assert said.gpu is not None
        assert said.gpu.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]

    def test_equal_gpus_take_turns(self) -> None:
        said = decided(network_of([-2, -1, -1, -1, -1]), numbered(4000), exploring(0.0))
        assert said.gpu_fraction.tolist() == [1] * 4000
        assert said.gpu is not None
        assert np.bincount(said.gpu).tolist() == [1000] * 4

    def test_gpus_that_are_nearly_as_good_take_turns_and_the_others_get_nothing(self) -> None:
        worth = [-2, -1.5, -1.02, -1.0, -1.04]
        spec = exploring(0.0, indifference=0.05)
        said = decided(network_of(worth), numbered(6), spec)
        assert said.gpu is not None
        assert said.gpu.tolist() == [1, 2, 3, 1, 2, 3]

    def test_a_clearly_better_gpu_takes_all(self) -> None:
        said = decided(network_of([-2, -1.5, -1.4, -1.0, -1.3]), numbered(50), exploring(0.0))
        assert said.gpu is not None
        assert set(said.gpu.tolist()) == {2}

    def test_turns_are_taken_task_by_task(self) -> None:
        worth = np.array([[0.0, 1, 1], [0, 2, 1], [5, 1, 1], [0, 1, 2], [0, 1, 1], [0, 1, 1]])
        actions = take_turns(worth, np.array([10, 11, 12, 13, 14, 15]), 0.1)
        assert actions.tolist() == [1, 1, 0, 2, 1, 2]

    def test_the_cpu_must_not_be_better_than_the_best_gpu_however_indifferent(self) -> None:
        # The third GPU alone beats the CPU; its near equal may have the turn all the same.
        actions = take_turns(np.array([[0.98, 0.0, 0.96, 1.0]] * 4), np.arange(4), 0.05)
        assert actions.tolist() == [2, 3, 2, 3]

    def test_a_model_for_another_cluster_is_an_error_that_says_so(self) -> None:
        with pytest.raises(ValueError, match="a model of 3 GPUs in a cluster of 4"):
            decided(network_of([0, 1, 1, 1]), numbered(1), agent_spec())


def assert_share(found: Any, expected: float) -> None:
    """A share of independent draws is as expected, to five standard errors."""
    error = (expected * (1 - expected) / len(found)) ** 0.5
    assert np.mean(found) == pytest.approx(expected, abs=5 * error)


class TestExploration:
    @pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 1.0])
    def test_it_is_as_frequent_as_the_spec_says(self, share: float) -> None:
        said = decided(network_of([0, 1, 1, 1, 1]), numbered(20_000), exploring(share))
        assert said.explored is not None
        assert_share(said.explored, share)

    def test_it_fades_from_task_to_task(self) -> None:
        spec = agent_spec(epsilon_start=0.1, epsilon_end=0.01, epsilon_tasks=1500)
        found = epsilon(np.array([0, 1500, 3000, 10**6]), spec)
        # 0.01 + 0.09 e^0, e^-1, e^-2, 0
        assert found.tolist() == pytest.approx([0.1, 0.0431091, 0.0221802, 0.01], abs=1e-7)

    def test_without_pretraining_it_starts_at_the_cold_value(self) -> None:
        spec = agent_spec(pretrain=0, epsilon_cold=0.9, epsilon_start=0.1, epsilon_end=0.1)
        assert epsilon(np.array([0, 1500]), spec).tolist() == pytest.approx(
            [0.9, 0.1 + 0.8 * 0.3678794]
        )

    def test_a_learner_may_ask_for_more_of_it(self) -> None:
        weights = network_of([0, 1, 1, 1, 1], exploration=0.4)
        said = decided(weights, numbered(20_000), exploring(0.05))
        assert said.explored is not None
        assert_share(said.explored, 0.4)

    def test_a_learner_cannot_ask_for_less_than_the_spec_says(self) -> None:
        weights = network_of([0, 1, 1, 1, 1], exploration=0.05)
        said = decided(weights, numbered(20_000), exploring(0.4))
        assert said.explored is not None
        assert_share(said.explored, 0.4)

    def test_it_depends_on_seed_and_task_id_alone(self) -> None:
        spec = exploring(0.3)
        tasks, _ = generate(spec, Cursor(next_task=77), 500)
        one = decided(network_of([0, 1, 2, 3, 4]), tasks, spec)
        other = decided(network_of([4, 3, 2, 1, 0]), numbered(500, first=77), spec)
        assert one.explored is not None
        assert np.array_equal(one.explored, other.explored)
        tried = one.explored
        assert np.array_equal(one.gpu_fraction[tried], other.gpu_fraction[tried])
        assert one.gpu is not None
        assert other.gpu is not None
        assert np.array_equal(one.gpu[tried], other.gpu[tried])

    def test_another_seed_explores_otherwise(self) -> None:
        weights, tasks = network_of([0, 1, 1, 1, 1]), numbered(2000)
        one = decided(weights, tasks, exploring(0.3, seed=1)).explored
        other = decided(weights, tasks, exploring(0.3, seed=2)).explored
        assert one is not None
        # Independent ones agree where both do (0.09) or neither does (0.49).
        assert_share(one == other, 0.58)

    @pytest.mark.parametrize("share", [0.2, 1.0])
    def test_every_action_is_tried_equally_often(self, share: float) -> None:
        said = decided(network_of([0, 1, 1, 1, 1]), numbered(20_000), exploring(share))
        assert said.gpu is not None
        action = np.where(said.gpu_fraction > 0, said.gpu + 1, 0)[said.explored]
        for number in range(5):
            assert_share(action == number, 0.2)

    def test_a_surprised_learner_has_the_cpu_tried_as_often_as_the_gpus(self) -> None:
        weights = network_of([0, 1, 1, 1, 1], exploration=0.4)
        said = decided(weights, numbered(20_000), exploring(0.05))
        assert said.gpu is not None
        action = np.where(said.gpu_fraction > 0, said.gpu + 1, 0)[said.explored]
        assert_share(action == 0, 0.5)
        for number in range(1, 5):
            assert_share(action == number, 0.125)


class TestProbability:
    def test_it_is_that_of_the_action_that_was_taken(self) -> None:
        """Two GPUs and the CPU, GPU 1 is best, a fifth is explored: 0.2/3 for what is tried, and
        0.8 more for the best one, even if it was found by trying."""
        said = decided(network_of([0, 1, 2]), numbered(3000), exploring(0.2, gpus=2))
        assert said.probability is not None
        assert said.gpu is not None
        best = (said.gpu_fraction == 1) & (said.gpu == 1)
        assert (best & said.explored).any()
        assert (~best).any()
        assert said.probability[best].tolist() == pytest.approx([0.8 + 0.2 / 3] * best.sum())
        assert said.probability[~best].tolist() == pytest.approx([0.2 / 3] * (~best).sum())

    def test_it_is_how_often_the_action_is_taken(self) -> None:
        said = decided(network_of([2, 1, 0]), numbered(20_000), exploring(0.3, gpus=2))
        assert said.probability is not None
        assert_share(said.gpu_fraction == 0, float(said.probability[said.gpu_fraction == 0][0]))

    def test_the_turn_that_a_task_id_has_is_the_best_action(self) -> None:
        said = decided(network_of([0, 1, 1, 1, 1]), numbered(100), exploring(0.0))
        assert said.probability is not None
        assert said.probability.tolist() == [1.0] * 100

    def test_exploration_that_the_learner_asked_for_counts(self) -> None:
        weights = network_of([0, 1], exploration=0.5)
        said = decided(weights, numbered(200), exploring(0.1, gpus=1))
        assert set(said.probability.tolist()) == {0.25, 0.75}


def without(weights: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in weights.items() if key != name}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"garbage",
        bytes(save(network(4)))[:-8],
        bytes(save(without(network(4), "advantage.bias"))),
        bytes(save(without(network(4), "centre"))),
        bytes(save(without(network(4), "exploration"))),
        bytes(save({**network(4), "centre": np.zeros(4, np.float32)})),
        bytes(save({**network(4), "value.weight": np.zeros((1, 9), np.float32)})),
    ],
)
def test_weights_that_are_no_agents_cannot_be_opened(body: bytes) -> None:
    agent = RlAgent()
    with pytest.raises(Exception):  # noqa: B017, PT011  whichever: the shelf refuses it
        agent.open(body)


def test_another_model_decides_otherwise() -> None:
    """The contract would hold for a policy that ignores its model."""
    spec = exploring(0.0)
    tasks, _ = generate(spec, Cursor(), 200)
    one, other = (decided(network(4, seed=seed), tasks, spec) for seed in (1, 2))
    assert not same(one, other)
