"""`rl_agent` with a network: the policy contract, Q-values, exploration and probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from services.scheduler.policies.rl_agent import RlAgent, best_action, epsilon, q_values
from services.scheduler.policy import ClusterPolicy, Policy
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.cluster.observation import Observation
from shared.domain.cluster.virtual_cluster import Cluster
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.domain.workload import Cursor, generate
from tests.unit.scheduler.cluster_policy_contract import CASES, ClusterPolicyContract
from tests.unit.scheduler.policy_contract import PolicyContract, are_equal, part_of


def network(
    gpus: int, *, hidden: int = 8, exploration: float = 0.0, seed: int = 1, queues: int = 0
) -> dict[str, Any]:
    """A dueling network with random weights, that sees so many queues."""
    random = np.random.default_rng(seed)

    def layer(name: str, inputs: int, outputs: int) -> dict[str, Any]:
        return {
            f"{name}.weight": random.normal(size=(outputs, inputs)).astype(np.float32),
            f"{name}.bias": random.normal(size=outputs).astype(np.float32),
        }

    return {
        "centre": np.array([5.3, 0.5, 6.7], np.float32),
        "spread": np.array([0.8, 0.3, 1.3], np.float32),
        **layer("body.0", 3 + queues, hidden),
        **layer("body.2", hidden, hidden),
        **layer("value", hidden, 1),
        **layer("advantage", hidden, gpus + 1),
        "scale": np.array([1.0]),
        "exploration": np.array([exploration]),
    }


def network_of(q: list[float], exploration: float = 0.0) -> dict[str, Any]:
    """A network with the same Q-values for every task: the CPU's, then the GPUs'."""
    weights = network(len(q) - 1, exploration=exploration)
    for name in ("value", "advantage"):
        weights[f"{name}.weight"][:] = 0
    mean = sum(q) / len(q)
    weights["value.bias"][:] = mean
    weights["advantage.bias"][:] = np.array(q) - mean
    return weights


class OfTheTaskAlone(Policy):
    """`rl_agent` in a run in which it does not observe the cluster; None: it has no model yet."""

    name = RlAgent.name

    def __init__(self, body: bytes | None) -> None:
        self._agent = RlAgent()
        self._model = None if body is None else self._agent.load_model(body)

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        if self._model is None:
            made = self._agent.prepare(tasks, spec)
        else:
            made = self._agent.prepare_with(self._model, tasks, spec)
        assert isinstance(made, Decisions)
        return made


class TestWithoutAModel(PolicyContract):
    @pytest.fixture
    def make_policy(self) -> Callable[[], Policy]:
        return lambda: OfTheTaskAlone(None)


class TestRlAgent(PolicyContract):
    @pytest.fixture
    def make_policy(self, spec: RunSpec) -> Callable[[], Policy]:
        body = bytes(save(network(len(spec.platform.accelerators))))
        return lambda: OfTheTaskAlone(body)

    def test_it_does_not_split_tasks(self, policy: Policy, tasks: Tasks, spec: RunSpec) -> None:
        assert set(policy.decide(tasks, spec).gpu_fraction.tolist()) <= {0.0, 1.0}

    def test_exploration_does_not_depend_on_the_size_of_batches(
        self, policy: Policy, tasks: Tasks, spec: RunSpec
    ) -> None:
        whole = policy.decide(tasks, spec)
        part = policy.decide(part_of(tasks, 400, 700), spec)
        assert np.array_equal(part.explored, whole.explored[400:700])
        assert np.array_equal(part.probability, whole.probability[400:700])


class ObservingTheCluster(RlAgent):
    """With its model, as a worker uses it."""

    def __init__(self, body: bytes) -> None:
        self._model = self.load_model(body)

    def prepare(self, tasks: Tasks, spec: RunSpec) -> Any:
        return self.prepare_with(self._model, tasks, spec)


OBSERVING = {"learning": {"agent": {"observes": "cluster"}}}


class TestRlAgentThatObservesTheCluster(ClusterPolicyContract):
    @pytest.fixture(params=CASES)
    def spec(self, request: pytest.FixtureRequest) -> RunSpec:
        return RunSpec.parse(CASES[request.param] | OBSERVING)

    @pytest.fixture
    def make_policy(self, spec: RunSpec) -> Callable[[], ClusterPolicy]:
        gpus = len(spec.platform.accelerators)
        return lambda: ObservingTheCluster(bytes(save(network(gpus, queues=gpus + 1))))

    def test_it_takes_the_device_of_the_highest_value_that_can_run_the_task(self) -> None:
        """Values -1 of the CPU and -2 of each GPU, less half the wait. The GPUs
        have no room for the last task."""
        weights = network(2, queues=3)
        for name in ("value", "advantage"):
            weights[f"{name}.weight"][:] = 0
        weights["value.bias"][:], weights["advantage.bias"][:] = -5 / 3, [2 / 3, -1 / 3, -1 / 3]
        spec = exploring(0.0, gpus=2, observes="cluster")
        size = np.full(6, 1000 * 4 ** (2 / 3))  # 4 s on the CPU, 1.6 s on a GPU
        memory = np.array([0.0, 0, 0, 0, 0, 9000])
        tasks = Tasks(np.arange(6), size, np.full(6, 0.5), memory, np.zeros(6))
        placed = placed_by(ObservingTheCluster(bytes(save(weights))), tasks, spec)
        # The CPU (-1); then it has -1 - 2, the GPUs -2; then -2.8 and -2; -2.8 and -2.8; ...
        assert placed == ["cpu", 0, 1, 0, 1, "cpu"]


def placed_by(policy: RlAgent, tasks: Tasks, spec: RunSpec) -> list[int | str]:
    cluster = Cluster.idle(len(spec.platform))
    prepared = policy.prepare(tasks, spec)
    view = ClusterView(cluster, Observation(cluster.copy()), tasks, spec, prepared=prepared)
    decisions = policy.decide(tasks, view, spec)
    return [
        int(device) if share else "cpu"
        for device, share in zip(decisions.device, decisions.gpu_fraction, strict=True)
    ]


def numbered(count: int, first: int = 0) -> Tasks:
    """Tasks that differ only by their id."""
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
    made = agent.prepare_with(agent.load_model(bytes(save(weights))), tasks, spec)
    assert isinstance(made, Decisions)
    return made


class TestQValues:
    def test_they_follow_from_the_weights_by_hand(self) -> None:
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
        # State (3, 0.5, 2.5) is normalised to (1, 0.5, 1); first layer (1.5, -0.5) -> (1.5, 0);
        # second (3, 1.5); value 0.5; advantages (3, 1.5, 2.5), 7/3 on average.
        q = q_values(weights, np.array([[3.0, 0.5, 2.5]], np.float32))
        assert q[0].tolist() == pytest.approx([3.5 - 7 / 3, 2.0 - 7 / 3, 3.0 - 7 / 3])

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
        decisions = decided(weights, tasks, exploring(0.0, gpus=1))
        assert decisions.gpu_fraction.tolist() == [1, 1, 0]


class TestBestAction:
    def test_the_cpu_is_chosen_where_its_value_is_higher(self) -> None:
        decisions = decided(network_of([-0.5, -1, -1, -1, -1]), numbered(8), exploring(0.0))
        assert decisions.gpu_fraction.tolist() == [0] * 8
        assert decisions.device.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]

    def test_equal_gpus_are_used_in_rotation(self) -> None:
        decisions = decided(network_of([-2, -1, -1, -1, -1]), numbered(4000), exploring(0.0))
        assert decisions.gpu_fraction.tolist() == [1] * 4000
        assert np.bincount(decisions.device).tolist() == [1000] * 4

    def test_gpus_that_are_nearly_as_good_rotate_and_the_others_are_not_used(self) -> None:
        q = [-2, -1.5, -1.02, -1.0, -1.04]
        spec = exploring(0.0, indifference=0.05)
        decisions = decided(network_of(q), numbered(6), spec)
        assert decisions.device.tolist() == [1, 2, 3, 1, 2, 3]

    def test_a_clearly_better_gpu_is_used_for_every_task(self) -> None:
        decisions = decided(network_of([-2, -1.5, -1.4, -1.0, -1.3]), numbered(50), exploring(0.0))
        assert set(decisions.device.tolist()) == {2}

    def test_the_rotation_is_by_task_id(self) -> None:
        q = np.array([[0.0, 1, 1], [0, 2, 1], [5, 1, 1], [0, 1, 2], [0, 1, 1], [0, 1, 1]])
        actions = best_action(q, np.array([10, 11, 12, 13, 14, 15]), 0.1, np.array([1, 1]))
        assert actions.tolist() == [1, 1, 0, 2, 1, 2]

    def test_a_gpu_is_used_only_if_the_best_gpu_is_better_than_the_cpu(self) -> None:
        # Only the third GPU is better than the CPU; the second rotates with it anyway.
        q = np.array([[0.98, 0.0, 0.96, 1.0]] * 4)
        actions = best_action(q, np.arange(4), 0.05, np.array([1, 1, 1]))
        assert actions.tolist() == [2, 3, 2, 3]

    def test_equal_types_are_used_as_often_as_they_have_devices(self) -> None:
        q = np.array([[0.0, 1.0, 0.5, 1.0]] * 8)
        actions = best_action(q, np.arange(8), 0.1, np.array([1, 9, 3]))
        assert actions.tolist() == [1, 3, 3, 3, 1, 3, 3, 3]

    def test_a_model_for_another_cluster_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="a model of 4 actions in a cluster of 5"):
            decided(network_of([0, 1, 1, 1]), numbered(1), agent_spec())


def assert_share(draws: Any, expected: float) -> None:
    """A share of independent draws is as expected, to five standard errors."""
    error = (expected * (1 - expected) / len(draws)) ** 0.5
    assert np.mean(draws) == pytest.approx(expected, abs=5 * error)


class TestExploration:
    @pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 1.0])
    def test_it_is_as_frequent_as_in_the_spec(self, share: float) -> None:
        decisions = decided(network_of([0, 1, 1, 1, 1]), numbered(20_000), exploring(share))
        assert_share(decisions.explored, share)

    def test_it_decays_with_the_task_id(self) -> None:
        spec = agent_spec(epsilon_start=0.1, epsilon_end=0.01, epsilon_tasks=1500)
        share = epsilon(np.array([0, 1500, 3000, 10**6]), spec)
        # 0.01 + 0.09 e^0, e^-1, e^-2, 0
        assert share.tolist() == pytest.approx([0.1, 0.0431091, 0.0221802, 0.01], abs=1e-7)

    def test_without_pretraining_it_starts_at_the_cold_value(self) -> None:
        spec = agent_spec(pretrain=0, epsilon_cold=0.9, epsilon_start=0.1, epsilon_end=0.1)
        assert epsilon(np.array([0, 1500]), spec).tolist() == pytest.approx(
            [0.9, 0.1 + 0.8 * 0.3678794]
        )

    @pytest.mark.parametrize(("of_model", "of_spec"), [(0.4, 0.05), (0.05, 0.4)])
    def test_a_model_can_ask_for_more_but_not_for_less(
        self, of_model: float, of_spec: float
    ) -> None:
        weights = network_of([0, 1, 1, 1, 1], exploration=of_model)
        assert_share(decided(weights, numbered(20_000), exploring(of_spec)).explored, 0.4)

    def test_it_depends_on_seed_and_task_id_alone(self) -> None:
        spec = exploring(0.3)
        tasks, _ = generate(spec, Cursor(next_task=77), 500)
        one = decided(network_of([0, 1, 2, 3, 4]), tasks, spec)
        other = decided(network_of([4, 3, 2, 1, 0]), numbered(500, first=77), spec)
        assert one.explored is not None
        assert np.array_equal(one.explored, other.explored)
        tried = one.explored
        assert np.array_equal(one.gpu_fraction[tried], other.gpu_fraction[tried])
        assert np.array_equal(one.device[tried], other.device[tried])

    def test_another_seed_explores_other_tasks(self) -> None:
        weights, tasks = network_of([0, 1, 1, 1, 1]), numbered(2000)
        one = decided(weights, tasks, exploring(0.3, seed=1)).explored
        other = decided(weights, tasks, exploring(0.3, seed=2)).explored
        assert one is not None
        # Independent ones agree where both do (0.09) or neither does (0.49).
        assert_share(one == other, 0.58)

    @pytest.mark.parametrize("share", [0.2, 1.0])
    def test_every_action_is_explored_equally_often(self, share: float) -> None:
        decisions = decided(network_of([0, 1, 1, 1, 1]), numbered(20_000), exploring(share))
        action = np.where(decisions.gpu_fraction > 0, decisions.device + 1, 0)[decisions.explored]
        for number in range(5):
            assert_share(action == number, 0.2)

    def test_after_a_surprise_half_of_it_is_on_the_cpu(self) -> None:
        weights = network_of([0, 1, 1, 1, 1], exploration=0.4)
        decisions = decided(weights, numbered(20_000), exploring(0.05))
        action = np.where(decisions.gpu_fraction > 0, decisions.device + 1, 0)[decisions.explored]
        assert_share(action == 0, 0.5)
        for number in range(1, 5):
            assert_share(action == number, 0.125)


class TestProbability:
    def test_it_is_that_of_the_action_taken(self) -> None:
        """Two GPUs and the CPU, GPU 1 is best, a fifth is explored: 0.2/3 for each action, and 0.8
        more for the best one, even if it was explored."""
        decisions = decided(network_of([0, 1, 2]), numbered(3000), exploring(0.2, gpus=2))
        best = (decisions.gpu_fraction == 1) & (decisions.device == 1)
        assert (best & decisions.explored).any()
        assert (~best).any()
        assert decisions.probability[best].tolist() == pytest.approx([0.8 + 0.2 / 3] * best.sum())
        assert decisions.probability[~best].tolist() == pytest.approx([0.2 / 3] * (~best).sum())

    def test_it_is_the_frequency_of_the_action(self) -> None:
        decisions = decided(network_of([2, 1, 0]), numbered(20_000), exploring(0.3, gpus=2))
        assert_share(
            decisions.gpu_fraction == 0,
            float(decisions.probability[decisions.gpu_fraction == 0][0]),
        )

    def test_the_gpu_in_rotation_counts_as_the_best_action(self) -> None:
        decisions = decided(network_of([0, 1, 1, 1, 1]), numbered(100), exploring(0.0))
        assert decisions.probability.tolist() == [1.0] * 100

    def test_exploration_that_the_model_asks_for_counts(self) -> None:
        weights = network_of([0, 1], exploration=0.5)
        decisions = decided(weights, numbered(200), exploring(0.1, gpus=1))
        assert set(decisions.probability.tolist()) == {0.25, 0.75}


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
def test_weights_that_are_not_an_agents_are_an_error(body: bytes) -> None:
    agent = RlAgent()
    with pytest.raises(Exception):  # noqa: B017, PT011  any: the cache refuses the model
        agent.load_model(body)


def test_another_model_decides_differently() -> None:
    """The contract would hold for a policy that ignores its model."""
    spec = exploring(0.0)
    tasks, _ = generate(spec, Cursor(), 200)
    one, other = (decided(network(4, seed=seed), tasks, spec) for seed in (1, 2))
    assert not are_equal(one, other)
