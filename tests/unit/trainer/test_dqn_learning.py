"""How well the agent's learner learns, and what it does when the world surprises it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load

from services.trainer.dqn import Dqn
from shared.features import agent_state
from shared.spec import RunSpec
from shared.workload import Cursor, generate
from tests.unit.trainer.agents import (
    equal,
    parameters,
    pretrained,
    results,
    seconds,
    spec_of,
    tasks_of,
    worth,
)


class TestLearning:
    @pytest.mark.parametrize("seed", [1, 2])
    def test_pretraining_brings_it_within_5_percent_of_the_oracle(self, seed: int) -> None:
        unseen = tasks_of(seed, 3000)
        on_cpu, on_gpu = seconds(unseen)
        taken = np.where(worth(pretrained(seed), unseen).argmax(axis=1) == 0, on_cpu, on_gpu)
        # The Oracle may cut a task that does not fit; where it does, its time is even less.
        room = np.minimum(8000 / unseen.memory_required, 1.0)
        base = (unseen.size / 1000) ** 1.5 / (unseen.compute_intensity + 0.5)
        whole = base / (1 + 3 * unseen.compute_intensity) + unseen.memory_required / 16000
        best = np.minimum(base, room * whole + (1 - room) * base)
        ratio = taken.sum() / best.sum()
        assert 1 <= ratio < 1.05
        # And it is no accident: neither device alone comes near.
        assert min(on_cpu.sum(), on_gpu.sum()) / best.sum() > 1.1

    def test_it_is_the_same_for_the_same_seed(self) -> None:
        few = {"hidden": 16, "pretrain_steps": 60}
        assert pretrained(1, **few).weights() == pretrained(1, **few).weights()
        assert pretrained(1, **few).weights() != pretrained(2, **few).weights()

    def test_the_target_network_follows_every_50_steps(self) -> None:
        dqn = Dqn(spec_of(pretrain_steps=0), tasks_of(1, 200))
        dqn.pretrain(tasks_of(1, 200))
        start = parameters(dqn.target)
        assert equal(start, parameters(dqn.policy))
        dqn.learn(49)
        assert equal(start, parameters(dqn.target))
        dqn.learn(1)
        assert equal(parameters(dqn.policy), parameters(dqn.target))
        assert not equal(start, parameters(dqn.target))
        copied = parameters(dqn.target)
        dqn.learn(30)
        assert equal(copied, parameters(dqn.target))
        assert not equal(copied, parameters(dqn.policy))

    def test_the_values_become_the_rewards_when_only_the_present_counts(self) -> None:
        """A task of each kind over and over, with its own price."""
        tasks = tasks_of(9, 20)
        dqn = Dqn(spec_of(energy_weight=0.0, hidden=64, learning_rate=0.003), tasks)
        dqn.pretrain(tasks)
        on_cpu, on_gpu = seconds(tasks)
        found = worth(dqn, tasks)
        assert np.abs(found[:, 0] + on_cpu / dqn.scale).max() < 0.3
        assert np.abs(found[:, 1:] + (on_gpu / dqn.scale)[:, None]).max() < 0.3

    def test_the_future_counts_when_the_spec_says_so(self) -> None:
        """Every action pays -1 for ever: worth -1 / (1 - discount)."""
        for discount, expected in ((0.0, -1.0), (0.5, -2.0)):
            rule = {"discount": discount, "batch": 32, "target_every": 10, "learning_rate": 0.01}
            dqn = Dqn(spec_of(**rule), tasks_of(1, 200))
            state = agent_state(tasks_of(1, 200))
            for action in range(5):
                dqn.replay.add(np.arange(200), state, np.full(200, action), np.full(200, -1.0))
            dqn.learn(600)
            assert worth(dqn, tasks_of(1, 200)).mean() == pytest.approx(expected, abs=0.1)

    def test_it_learns_from_results_that_the_pretraining_did_not_know(self) -> None:
        """Here the GPU takes ten times as long as the formulas say."""
        dqn = pretrained(1, hidden=32, pretrain_steps=300)
        tasks = tasks_of(1, 600, preset="gpu_friendly")
        on_cpu, on_gpu = seconds(tasks)
        before = (worth(dqn, tasks).argmax(axis=1) > 0).mean()
        rounds = np.arange(600) % 2
        time = np.where(rounds == 1, 10 * on_gpu, on_cpu)
        for _ in range(5):
            dqn.remember(results(tasks, rounds, np.arange(600) // 2 % 4, time))
            dqn.learn(100)
        assert before > 0.9
        assert (worth(dqn, tasks).argmax(axis=1) > 0).mean() < 0.1

    def test_where_tasks_fail_on_a_gpu_it_keeps_them_off(self) -> None:
        """A failed task takes no time at all, which must not look like a good idea."""
        large = {
            "cluster": {"gpu_memory_mb": 700},
            "physics": {"memory_policy": "fail"},
            "learning": {"agent": {"pretrain_steps": 600, "hidden": 32}},
        }
        spec = RunSpec.parse({"seed": 3, **large})
        tasks, _ = generate(spec, Cursor(), 1000)
        dqn = Dqn(spec, tasks)
        dqn.pretrain(tasks)
        on_gpu = worth(dqn, tasks).argmax(axis=1) > 0
        clearly_too_large = tasks.memory_required > 900
        assert clearly_too_large.sum() > 50
        assert on_gpu[clearly_too_large].mean() < 0.15
        fits = (tasks.memory_required < 500) & (tasks.compute_intensity > 0.6)
        assert on_gpu[fits].mean() > 0.8


class TestSurprise:
    def told(self, dqn: Dqn, first: int, slowness: float) -> float:
        """A hundred results that took that many times as long as the formulas say."""
        tasks = tasks_of(1, 100, first)
        on_cpu, _ = seconds(tasks)
        cpu = np.zeros(100)
        return dqn.remember(results(tasks, cpu, cpu, slowness * on_cpu))

    @pytest.fixture
    def dqn(self) -> Dqn:
        tasks = tasks_of(1001, 1000)
        dqn = Dqn(spec_of(energy_weight=0.0, hidden=32, pretrain_steps=600), tasks)
        dqn.pretrain(tasks)
        return dqn

    def test_results_as_expected_ask_for_no_more_than_usual(self, dqn: Dqn) -> None:
        for first in range(0, 2000, 100):
            assert self.told(dqn, first, 1.0) == 100
            assert dqn.exploration == 0

    def test_results_far_from_what_was_expected_ask_for_more_learning_and_trying(
        self, dqn: Dqn
    ) -> None:
        self.told(dqn, 0, 1.0)
        assert self.told(dqn, 100, 20.0) == 100 * (1 + 16)
        assert dqn.exploration == 0.5
        assert load(dqn.weights())["exploration"].tolist() == [0.5]

    def test_it_calms_down_when_results_are_as_expected_again(self, dqn: Dqn) -> None:
        self.told(dqn, 0, 1.0)
        self.told(dqn, 100, 20.0)
        self.told(dqn, 200, 1.0)
        # Halved every 10 results.
        assert dqn.exploration == pytest.approx(0.5 * 0.5 ** (100 / 10))

    def test_half_of_what_it_learns_from_then_came_since_the_surprise(self, dqn: Dqn) -> None:
        self.told(dqn, 0, 1.0)
        assert dqn.recent == 500
        self.told(dqn, 100, 20.0)
        assert dqn.recent == 100
        self.told(dqn, 200, 20.0)
        assert dqn.recent == 200  # the same surprise goes on
        for first in range(300, 1000, 100):
            self.told(dqn, first, 1.0)
        assert dqn.recent == 500

    def test_a_tenth_more_of_a_huge_task_is_no_surprise(self, dqn: Dqn) -> None:
        for first in range(0, 300, 100):
            self.told(dqn, first, 1.0)
        some = tasks_of(1, 1)
        huge = replace(some, size=np.array([20_000.0]))
        expected = -worth(dqn, huge)[0, 0]
        assert expected > 10  # a tenth of it is more than a usual task's whole reward
        cpu = np.zeros(1)
        assert dqn.remember(results(huge, cpu, cpu, [1.1 * expected * dqn.scale])) == 1
