"""Every built-in policy keeps the contract and follows its rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from services.scheduler.cluster_worker import ClusterCopy, place
from services.scheduler.policy import ClusterPolicy, Policy, PolicyError, check, load
from services.scheduler.transfer_aware import TransferAware
from services.scheduler.worker import decide, with_decisions
from shared.domain.schedulers import AGENT, BUILT_IN, FOREST, LEARNERS, ORACLE
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.messages import batches
from shared.messages.batches import Batch, Envelope
from tests.unit.scheduler.cluster_policy_contract import ClusterPolicyContract
from tests.unit.scheduler.policy_contract import PolicyContract

SERIAL = RunSpec()
OVERLAPPED = RunSpec.parse({"physics": {"split": "overlapped"}})

# Seconds by hand, on the CPU and on a GPU: (N/1000)^1.5 / (I + 0.5); that / (1 + 3 I) + M/16000.
EASY = (1000, 0.5, 1600)  # 1 and 0.5
SLOW_TRANSFER = (1000, 0.5, 7200)  # 1 and 0.85
TINY = (90, 0.0, 4000)  # 0.054 and 0.304
BULKY = (4000, 1.0, 16_000)  # 5.333 and 2.333, but half of it is all that fits 8000 MB
IDLE = (4000, 0.0, 16_000)  # 16 and 17


def tasks_of(*rows: tuple[float, float, float], first: int = 0) -> Tasks:
    size, intensity, memory = np.array(rows, dtype=np.float64).T
    count = len(rows)
    return Tasks(np.arange(first, first + count), size, intensity, memory, np.zeros(count))


def load_task_policy(name: str) -> Policy:
    policy = load(name)
    assert isinstance(policy, Policy)
    return policy


def load_cluster_policy(name: str) -> ClusterPolicy:
    policy = load(name)
    assert isinstance(policy, ClusterPolicy)
    return policy


def shares(name: str, tasks: Tasks, spec: RunSpec = SERIAL) -> Any:
    return load_task_policy(name).decide(tasks, spec).gpu_fraction.tolist()


async def decided(name: str, tasks: Tasks, spec: RunSpec = SERIAL) -> dict[str, list[Any]]:
    """The columns of the decisions of a policy of either kind, without a model."""
    policy = load(name)
    batch = Batch(Envelope("tasks", "run", 0, 0.0), batches.task_rows(tasks))
    if isinstance(policy, Policy):
        found = decide(batch, policy, spec)
    else:
        prepared = policy.prepare(tasks, spec)
        if isinstance(prepared, Decisions):
            found = with_decisions(batch, tasks, prepared, policy, spec)
        else:
            found, *_ = place(batch, policy, ClusterCopy.new(spec), spec, prepared)
    return batches.complete(found.rows, "decisions").to_pydict()


TASK_POLICIES = [name for name in BUILT_IN if isinstance(load(name), Policy)]
CLUSTER_POLICIES = [
    name for name in BUILT_IN if isinstance(load(name), ClusterPolicy) and name != AGENT
]


class TestTaskPolicies(PolicyContract):
    """Rules that look at the task alone."""

    @pytest.fixture(params=TASK_POLICIES)
    def make_policy(self, request: pytest.FixtureRequest) -> Callable[[], Policy]:
        return lambda: load_task_policy(request.param)


class TestTransferAware(PolicyContract):
    @pytest.fixture
    def make_policy(self) -> Callable[[], Policy]:
        return TransferAware

    def test_a_task_is_on_a_gpu_if_it_computes_longer_than_it_moves_there_and_back(self) -> None:
        # Work 1, 1 and 0.027 seconds; transfer 0.1, 0.45 and 0.25 seconds.
        chosen = TransferAware().decide(tasks_of(EASY, SLOW_TRANSFER, TINY), SERIAL)
        assert chosen.gpu_fraction.tolist() == [1, 1, 0]
        # Work 1 second; twice the transfer is 1.0 and 1.125 seconds.
        chosen = TransferAware().decide(tasks_of((1000, 1, 8000), (1000, 1, 9000)), SERIAL)
        assert chosen.gpu_fraction.tolist() == [0, 0]


class TestClusterPolicies(ClusterPolicyContract):
    """Learners without a model, as before their first one; see test_rl_agent.py for that one."""

    @pytest.fixture(params=CLUSTER_POLICIES)
    def make_policy(self, request: pytest.FixtureRequest) -> Callable[[], ClusterPolicy]:
        return lambda: load_cluster_policy(request.param)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("round_robin", [0, 0.5, 0, 0.5, 0]),  # splits even tasks, runs odd ones on the CPU
        ("cpu_only", [0] * 5),
        ("gpu_only", [1] * 5),
    ],
)
def test_a_fixed_rule_does_not_look_at_the_tasks(name: str, expected: list[float]) -> None:
    assert shares(name, tasks_of(EASY, TINY, BULKY, IDLE, EASY, first=7)) == expected


@pytest.mark.parametrize("name", ["greedy", FOREST, AGENT])
async def test_the_share_of_greedy_and_of_those_that_imitate_it_without_a_model_is_the_intensity(
    name: str,
) -> None:
    tasks = tasks_of((10, 0.0, 9), (1e6, 0.125, 64_000), (1, 1.0, 0))
    rows = await decided(name, tasks)
    assert rows["gpu_fraction"] == [0, 0.125, 1]


class TestOracle:
    def test_serial_parts_all_that_fits_runs_on_the_faster_device(self) -> None:
        tasks = tasks_of(EASY, SLOW_TRANSFER, TINY, IDLE, BULKY)
        assert shares(ORACLE, tasks) == [1, 1, 0, 0, 0.5]

    def test_overlapped_parts_end_together(self) -> None:
        # f * 0.5 = 1 - f at 2/3; f * 0.85 = 1 - f at 1/1.85.
        tasks = tasks_of(EASY, SLOW_TRANSFER)
        assert shares(ORACLE, tasks, OVERLAPPED) == pytest.approx([2 / 3, 1 / 1.85])

    def test_a_share_that_would_fail_is_not_chosen(self) -> None:
        spec = RunSpec.parse({"physics": {"memory_policy": "fail"}})
        assert shares(ORACLE, tasks_of(BULKY), spec) == [0.5]

    def test_a_share_that_needs_paging_is_chosen_if_it_is_still_faster(self) -> None:
        # All of it on the GPU: 2.333 + 8000/16000 = 2.833, less than half of it: 3.833.
        spec = RunSpec.parse({"physics": {"memory_policy": "page"}})
        assert shares(ORACLE, tasks_of(BULKY), spec) == [1]


class TestRandom:
    @pytest.mark.parametrize(
        ("seed", "expected"),
        [
            (0, [0.6548894655632133, 0.4681754780919517, 0.09063217758328779]),
            (42, [0.7991876840255474, 0.47267726091818085, 0.5751662786346372]),
            (2**63 - 1, [0.9838636327828625, 0.2705670626611829, 0.14834052974776046]),
        ],
    )
    def test_a_seed_has_the_same_shares_for_ever(self, seed: int, expected: list[float]) -> None:
        """From SplitMix64 as published, in plain integers."""
        tasks = tasks_of(EASY, TINY, BULKY, first=10**12)
        assert shares("random", tasks, RunSpec(seed=seed)) == expected

    def test_the_shares_are_uniform(self) -> None:
        # 10,000 draws in ten bins: 1000 each, standard deviation 30.
        drawn = shares("random", tasks_of(*[EASY] * 10_000))
        counts, _ = np.histogram(drawn, bins=10, range=(0, 1))
        assert np.abs(counts - 1000).max() < 150

    def test_the_shares_do_not_depend_on_the_tasks(self) -> None:
        assert shares("random", tasks_of(EASY, BULKY)) == shares("random", tasks_of(TINY, IDLE))


@pytest.mark.parametrize("name", LEARNERS)
async def test_a_decision_without_a_model_has_version_0(name: str) -> None:
    rows = await decided(name, tasks_of(EASY, TINY))
    assert rows["model_version"] == [0, 0]
    assert rows["explored"] == [False, False]
    assert rows["probability"] == [1.0, 1.0]
    assert rows["cpu"] == [4, 4]


@pytest.mark.parametrize(
    ("decisions", "reason"),
    [
        (Decisions(np.zeros(3)), r"own: gpu_fraction has shape \(3,\) for 2 tasks"),
        (Decisions(np.zeros((2, 1))), r"own: gpu_fraction has shape \(2, 1\) for 2 tasks"),
        (Decisions(np.array([0.5, 1.01])), r"own: gpu_fraction must be 0\.\.1, got 1\.01"),
        (Decisions(np.array([-0.1, 0])), r"own: gpu_fraction must be 0\.\.1, got -0\.1"),
        (Decisions(np.array([0, np.nan])), r"own: gpu_fraction must be 0\.\.1, got nan"),
        (Decisions(np.zeros(2), np.zeros(1)), r"own: device has shape \(1,\) for 2 tasks"),
        (Decisions(np.zeros(2), np.array([0, 4])), r"own: device must be .* \(0\.\.3\)"),
        (Decisions(np.zeros(2), np.array([-2, 0])), r"own: device must be .* \(0\.\.3\)"),
        (Decisions(np.zeros(2), cpu=np.array([4, 3])), r"own: cpu must be .* \(4\.\.4\)"),
    ],
)
def test_invalid_decisions_are_errors_that_say_why(decisions: Decisions, reason: str) -> None:
    with pytest.raises(PolicyError, match=reason):
        check(decisions, tasks_of(EASY, EASY), SERIAL, "own")
