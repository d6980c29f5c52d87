"""How well the DQN learns, and what it does after a surprise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load

from services.trainer.agent_transitions import Transitions, following
from services.trainer.learners.rl_agent import Dqn
from shared.domain.learning.features import agent_state
from shared.domain.spec import RunSpec
from shared.domain.workload import Cursor, generate
from tests.unit.trainer.agents import (
    equal,
    parameters,
    pretrained,
    q_values,
    results,
    seconds,
    spec_of,
    tasks_of,
)


class TestLearning:
    @pytest.mark.parametrize("seed", [1, 2])
    def test_pretraining_brings_it_within_5_percent_of_the_oracle(self, seed: int) -> None:
        unseen = tasks_of(seed, 3000)
        on_cpu, on_gpu = seconds(unseen)
        chosen = np.where(q_values(pretrained(seed), unseen).argmax(axis=1) == 0, on_cpu, on_gpu)
        # The Oracle can split a task that does not fit, which takes even less time.
        room = np.minimum(8000 / unseen.memory_required, 1.0)
        base = (unseen.size / 1000) ** 1.5 / (unseen.compute_intensity + 0.5)
        whole = base / (1 + 3 * unseen.compute_intensity) + unseen.memory_required / 16000
        best = np.minimum(base, room * whole + (1 - room) * base)
        ratio = chosen.sum() / best.sum()
        assert 1 <= ratio < 1.05
        # Neither device alone comes near.
        assert min(on_cpu.sum(), on_gpu.sum()) / best.sum() > 1.1

    def test_the_same_seed_gives_the_same_weights(self) -> None:
        few = {"hidden": 16, "pretrain_steps": 60}
        assert pretrained(1, **few).weights() == pretrained(1, **few).weights()
        assert pretrained(1, **few).weights() != pretrained(2, **few).weights()

    def test_without_a_discount_there_is_no_target_network(self) -> None:
        assert Dqn(spec_of(), tasks_of(1, 200)).target is None

    def test_the_target_network_is_copied_every_50_steps(self) -> None:
        dqn = Dqn(spec_of(pretrain_steps=0, discount=0.5), tasks_of(1, 200))
        dqn.pretrain(tasks_of(1, 200))
        start = parameters(dqn.target)
        assert equal(start, parameters(dqn.policy))
        dqn.train(49)
        assert equal(start, parameters(dqn.target))
        dqn.train(1)
        assert equal(parameters(dqn.policy), parameters(dqn.target))
        assert not equal(start, parameters(dqn.target))
        copied = parameters(dqn.target)
        dqn.train(30)
        assert equal(copied, parameters(dqn.target))
        assert not equal(copied, parameters(dqn.policy))

    def test_without_a_discount_the_q_values_become_the_rewards(self) -> None:
        """The same few tasks over and over, with the reward of each action."""
        tasks = tasks_of(9, 20)
        dqn = Dqn(spec_of(energy_weight=0.0, hidden=64, learning_rate=0.003), tasks)
        dqn.pretrain(tasks)
        on_cpu, on_gpu = seconds(tasks)
        q = q_values(dqn, tasks)
        assert np.abs(q[:, 0] + on_cpu / dqn.scale).max() < 0.3
        assert np.abs(q[:, 1:] + (on_gpu / dqn.scale)[:, None]).max() < 0.3

    def test_with_a_discount_the_next_tasks_count(self) -> None:
        """Every reward is -1, so every Q-value is -1 / (1 - discount)."""
        for discount, expected in ((0.0, -1.0), (0.5, -2.0)):
            rule = {"discount": discount, "batch": 32, "target_every": 10, "learning_rate": 0.01}
            dqn = Dqn(spec_of(**rule), tasks_of(1, 200))
            state = agent_state(tasks_of(1, 200))
            for action in range(5):
                actions, rewards = np.full(200, action), np.full(200, -1.0)
                made = Transitions(np.arange(200), state, actions, rewards, following(state))
                dqn.replay.add(made)
            dqn.train(600)
            assert q_values(dqn, tasks_of(1, 200)).mean() == pytest.approx(expected, abs=0.1)

    def test_it_learns_from_results_that_contradict_the_pretraining(self) -> None:
        """Here the GPU takes ten times as long as the formulas say."""
        dqn = pretrained(1, hidden=32, pretrain_steps=300)
        tasks = tasks_of(1, 600, preset="gpu_friendly")
        on_cpu, on_gpu = seconds(tasks)
        before = (q_values(dqn, tasks).argmax(axis=1) > 0).mean()
        rounds = np.arange(600) % 2
        time = np.where(rounds == 1, 10 * on_gpu, on_cpu)
        for _ in range(5):
            dqn.add_results(results(tasks, rounds, np.arange(600) // 2 % 4, time))
            dqn.train(100)
        assert before > 0.9
        assert (q_values(dqn, tasks).argmax(axis=1) > 0).mean() < 0.1

    def test_tasks_that_would_fail_on_a_gpu_stay_off_it(self) -> None:
        """A failed task takes no time, which must not look like a good decision."""
        large = {
            "cluster": {"gpu_memory_mb": 700},
            "physics": {"memory_policy": "fail"},
            "learning": {"agent": {"pretrain_steps": 600, "hidden": 32}},
        }
        spec = RunSpec.parse({"seed": 3, **large})
        tasks, _ = generate(spec, Cursor(), 1000)
        dqn = Dqn(spec, tasks)
        dqn.pretrain(tasks)
        on_gpu = q_values(dqn, tasks).argmax(axis=1) > 0
        clearly_too_large = tasks.memory_required > 900
        assert clearly_too_large.sum() > 50
        assert on_gpu[clearly_too_large].mean() < 0.15
        fits = (tasks.memory_required < 500) & (tasks.compute_intensity > 0.6)
        assert on_gpu[fits].mean() > 0.8


class TestSurprise:
    def add(self, dqn: Dqn, first: int, slowness: float) -> float:
        """Add a hundred results that took that many times as long as in the formulas."""
        tasks = tasks_of(1, 100, first)
        on_cpu, _ = seconds(tasks)
        cpu = np.zeros(100)
        return dqn.add_results(results(tasks, cpu, cpu, slowness * on_cpu))

    @pytest.fixture
    def dqn(self) -> Dqn:
        tasks = tasks_of(1001, 1000)
        dqn = Dqn(spec_of(energy_weight=0.0, hidden=32, pretrain_steps=600), tasks)
        dqn.pretrain(tasks)
        return dqn

    def test_expected_results_change_neither_steps_nor_exploration(self, dqn: Dqn) -> None:
        for first in range(0, 2000, 100):
            assert self.add(dqn, first, 1.0) == 100
            assert dqn.exploration == 0

    def test_unexpected_results_lead_to_more_steps_and_exploration(self, dqn: Dqn) -> None:
        self.add(dqn, 0, 1.0)
        assert self.add(dqn, 100, 20.0) == 100 * (1 + 16)
        assert dqn.exploration == 0.5
        assert load(dqn.weights())["exploration"].tolist() == [0.5]

    def test_exploration_decays_when_results_are_as_expected_again(self, dqn: Dqn) -> None:
        self.add(dqn, 0, 1.0)
        self.add(dqn, 100, 20.0)
        self.add(dqn, 200, 1.0)
        # Halved every 10 results.
        assert dqn.exploration == pytest.approx(0.5 * 0.5 ** (100 / 10))

    def test_half_of_a_batch_is_then_from_the_results_since_the_surprise(self, dqn: Dqn) -> None:
        self.add(dqn, 0, 1.0)
        assert dqn.recent == 500
        self.add(dqn, 100, 20.0)
        assert dqn.recent == 100
        self.add(dqn, 200, 20.0)
        assert dqn.recent == 200  # the same surprise goes on
        for first in range(300, 1000, 100):
            self.add(dqn, first, 1.0)
        assert dqn.recent == 500

    def test_a_huge_task_that_takes_a_tenth_longer_is_no_surprise(self, dqn: Dqn) -> None:
        for first in range(0, 300, 100):
            self.add(dqn, first, 1.0)
        some = tasks_of(1, 1)
        huge = replace(some, size=np.array([20_000.0]))
        expected = -q_values(dqn, huge)[0, 0]
        assert expected > 10  # a tenth of it is more than the reward of an average task
        cpu = np.zeros(1)
        assert dqn.add_results(results(huge, cpu, cpu, [1.1 * expected * dqn.scale])) == 1
