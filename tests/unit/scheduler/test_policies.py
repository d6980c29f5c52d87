"""Each built-in policy keeps the contract and decides what its rule says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from services.scheduler import policy as policies
from services.scheduler.policy import Policy, PolicyError, check
from services.scheduler.worker import decide
from shared import batches
from shared.batches import Batch, Envelope
from shared.spec import RunSpec
from shared.tasks import Decisions, Tasks
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


def shares(policy: Policy, tasks: Tasks, spec: RunSpec = SERIAL) -> Any:
    return policy.decide(tasks, spec).gpu_fraction.tolist()


class TestRoundRobin(PolicyContract):
    reference = "round_robin"

    def test_half_of_even_tasks_and_nothing_of_odd_ones(self, policy: Policy) -> None:
        tasks = tasks_of(EASY, TINY, BULKY, IDLE, EASY, first=7)
        assert shares(policy, tasks) == [0, 0.5, 0, 0.5, 0]


class TestGreedy(PolicyContract):
    reference = "greedy"

    def test_the_share_is_the_intensity(self, policy: Policy) -> None:
        tasks = tasks_of((10, 0.0, 9), (1e6, 0.125, 64_000), (1, 1.0, 0))
        assert shares(policy, tasks) == [0, 0.125, 1]


class TestCpuOnly(PolicyContract):
    reference = "cpu_only"

    def test_everything_on_the_cpu(self, policy: Policy) -> None:
        assert shares(policy, tasks_of(EASY, TINY, BULKY)) == [0, 0, 0]


class TestGpuOnly(PolicyContract):
    reference = "gpu_only"

    def test_everything_on_a_gpu(self, policy: Policy) -> None:
        assert shares(policy, tasks_of(EASY, TINY, BULKY)) == [1, 1, 1]


class TestOracle(PolicyContract):
    reference = "oracle"

    def test_one_after_the_other_the_faster_device_takes_all_that_fits(
        self, policy: Policy
    ) -> None:
        tasks = tasks_of(EASY, SLOW_TRANSFER, TINY, IDLE, BULKY)
        assert shares(policy, tasks) == [1, 1, 0, 0, 0.5]

    def test_at_once_both_parts_end_together(self, policy: Policy) -> None:
        # f * 0.5 = 1 - f at 2/3; f * 0.85 = 1 - f at 1/1.85.
        tasks = tasks_of(EASY, SLOW_TRANSFER)
        assert shares(policy, tasks, OVERLAPPED) == pytest.approx([2 / 3, 1 / 1.85])

    def test_a_share_that_would_fail_is_not_taken(self, policy: Policy) -> None:
        spec = RunSpec.parse({"physics": {"memory_policy": "fail"}})
        assert shares(policy, tasks_of(BULKY), spec) == [0.5]

    def test_a_share_that_pays_for_paging_is_taken_when_it_is_still_faster(
        self, policy: Policy
    ) -> None:
        # All of it on the GPU: 2.333 + 8000/16000 = 2.833, less than half of it: 3.833.
        spec = RunSpec.parse({"physics": {"memory_policy": "page"}})
        assert shares(policy, tasks_of(BULKY), spec) == [1]


def split_mix(seed: int, counter: int) -> float:
    """SplitMix64 as published, in plain integers."""
    mask = 2**64 - 1

    def mix(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    gamma = 0x9E3779B97F4A7C15
    start = mix((seed + gamma) & mask)
    return (mix((start + (counter + 1) * gamma) & mask) >> 11) / 2**53


class TestRandom(PolicyContract):
    reference = "random"

    @pytest.mark.parametrize("seed", [0, 42, 2**63 - 1])
    def test_the_draw_is_a_hash_of_seed_and_task(self, policy: Policy, seed: int) -> None:
        spec = RunSpec.parse({"seed": seed})
        tasks = tasks_of(*[EASY] * 20, first=10**12)
        expected = [split_mix(seed, 10**12 + place) for place in range(20)]
        assert shares(policy, tasks, spec) == expected

    def test_the_draws_are_spread_evenly(self, policy: Policy) -> None:
        # 10,000 draws in ten bins: 1000 each, standard deviation 30.
        drawn = shares(policy, tasks_of(*[EASY] * 10_000))
        counts, _ = np.histogram(drawn, bins=10, range=(0, 1))
        assert np.abs(counts - 1000).max() < 150

    def test_another_seed_draws_otherwise(self, policy: Policy) -> None:
        tasks = tasks_of(*[EASY] * 100)
        one, other = (np.array(shares(policy, tasks, RunSpec(seed=seed))) for seed in (1, 2))
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.4

    def test_the_tasks_themselves_do_not_matter(self, policy: Policy) -> None:
        assert shares(policy, tasks_of(EASY, BULKY)) == shares(policy, tasks_of(TINY, IDLE))


class WithoutAModel(PolicyContract):
    """What a learning scheduler does until its first model arrives."""

    def test_the_share_is_the_intensity_as_in_greedy(self, policy: Policy) -> None:
        tasks = tasks_of((10, 0.0, 9), (1e6, 0.125, 64_000), (1, 1.0, 0))
        assert shares(policy, tasks) == [0, 0.125, 1]

    async def test_the_decision_says_that_no_model_made_it(self, policy: Policy) -> None:
        tasks = tasks_of(EASY, TINY, first=5)
        batch = Batch(Envelope("tasks", "run", 0, 0.0), batches.task_rows(tasks))
        said = (await decide(batch, policy, None, SERIAL)).rows.to_pydict()
        assert said["model_version"] == [0, 0]
        assert said["explored"] == [False, False]
        assert said["probability"] == [1.0, 1.0]
        assert said["gpu"] == [1, 2]


class TestHybridMlWithoutAModel(WithoutAModel):
    reference = "hybrid_ml"


class TestRlAgentWithoutAModel(WithoutAModel):
    reference = "rl_agent"


def with_contract(base: type[PolicyContract] = PolicyContract) -> set[str]:
    named = {base.reference} if hasattr(base, "reference") else set()
    return named.union(*(with_contract(contract) for contract in base.__subclasses__()))


def test_every_built_in_policy_keeps_the_contract() -> None:
    assert with_contract() >= set(policies.built_in())


@pytest.mark.parametrize(
    ("decisions", "reason"),
    [
        (Decisions(np.zeros(3)), r"own: gpu_fraction has shape \(3,\) for 2 tasks"),
        (Decisions(np.zeros((2, 1))), r"own: gpu_fraction has shape \(2, 1\) for 2 tasks"),
        (Decisions(np.array([0.5, 1.01])), r"own: gpu_fraction must be 0\.\.1, got 1\.01"),
        (Decisions(np.array([-0.1, 0])), r"own: gpu_fraction must be 0\.\.1, got -0\.1"),
        (Decisions(np.array([0, np.nan])), r"own: gpu_fraction must be 0\.\.1, got nan"),
        (Decisions(np.zeros(2), np.zeros(1)), r"own: gpu has shape \(1,\) for 2 tasks"),
        (Decisions(np.zeros(2), np.array([0, 4])), r"own: gpu must be 0\.\.3"),
        (Decisions(np.zeros(2), np.array([-1, 0])), r"own: gpu must be 0\.\.3"),
    ],
)
def test_nonsense_is_named(decisions: Decisions, reason: str) -> None:
    with pytest.raises(PolicyError, match=reason):
        check(decisions, tasks_of(EASY, EASY), SERIAL, "own")


def test_sense_is_accepted() -> None:
    decisions = Decisions(np.array([0.0, 1.0]), np.array([3, 0]))
    assert check(decisions, tasks_of(EASY, EASY), SERIAL, "own") is decisions
