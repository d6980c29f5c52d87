"""What the agent's learner remembers, and what it is asked to learn from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from services.trainer.dqn import Dqn, Replay
from shared.features import agent_state
from tests.unit.trainer.agents import equal, parameters, results, seconds, spec_of, tasks_of


class Remembered:
    """Numbered transitions: state (n, n, n), action n % 5, reward -n."""

    def __init__(self, size: int) -> None:
        self.replay = Replay(size)
        self.next = 1

    def add(self, count: int) -> None:
        numbers = np.arange(self.next, self.next + count)
        state = np.repeat(numbers[:, None], 3, axis=1).astype(np.float32)
        self.replay.add(numbers, state, numbers % 5, -numbers.astype(np.float64))
        self.next += count

    def drawn(self, count: int = 5000, newest: int = 10**6) -> list[int]:
        """The numbers of a sample, after all columns were found to agree."""
        state, action, paid, following = self.replay.sample(count, newest, np.random.default_rng(0))
        numbers = state[:, 0].numpy().astype(int)
        assert len(numbers) == count
        assert np.array_equal(state.numpy(), np.repeat(numbers[:, None], 3, axis=1))
        assert np.array_equal(action.numpy(), numbers % 5)
        assert np.array_equal(paid.numpy(), -numbers)
        ahead = following[:, 0].numpy() - numbers
        assert set(ahead.tolist()) <= {0, 1}
        return numbers.tolist()


class TestReplay:
    def test_what_was_not_written_is_never_returned(self) -> None:
        memory = Remembered(100)
        memory.add(7)
        assert len(memory.replay) == 7
        assert set(memory.drawn()) == set(range(1, 8))

    def test_the_oldest_give_way_when_it_is_full(self) -> None:
        memory = Remembered(10)
        for count in (4, 4, 4, 3):
            memory.add(count)
        assert len(memory.replay) == 10
        assert set(memory.drawn()) == set(range(6, 16))

    def test_a_stretch_that_ends_where_the_memory_ends_leaves_it_full(self) -> None:
        memory = Remembered(10)
        memory.add(10)
        assert set(memory.drawn()) == set(range(1, 11))
        memory.add(1)
        assert set(memory.drawn()) == set(range(2, 12))

    @pytest.mark.parametrize("before", [0, 3])
    def test_of_a_stretch_that_is_longer_than_the_memory_the_newest_stay(self, before: int) -> None:
        memory = Remembered(10)
        if before:
            memory.add(before)
        memory.add(25)
        assert set(memory.drawn()) == set(range(before + 16, before + 26))

    def test_what_follows_a_task_is_the_next_one(self) -> None:
        memory = Remembered(10)
        memory.add(4)
        assert memory.replay.following[:4, 0].tolist() == [2, 3, 4, 4]

    def test_half_of_a_sample_is_from_the_newest(self) -> None:
        memory = Remembered(1000)
        memory.add(1200)
        drawn = memory.drawn(10_000, newest=100)
        # A half of all, a tenth of the other half: 0.55, to five standard errors.
        share = np.mean([number > 1100 for number in drawn])
        assert share == pytest.approx(0.55, abs=5 * (0.55 * 0.45 / 10_000) ** 0.5)
        assert set(drawn) <= set(range(201, 1201))
        assert min(drawn) < 250

    def test_an_odd_sample_has_its_full_number(self) -> None:
        memory = Remembered(10)
        memory.add(3)
        assert len(memory.drawn(7, newest=1)) == 7


class Taught:
    """An agent, and what it remembers of a few results."""

    def __init__(self, **agent: Any) -> None:
        self.dqn = Dqn(spec_of(energy_weight=0.0, **agent), tasks_of(1, 200))

    def tell(self, share: list[float], gpu: list[int], time: list[float]) -> float:
        count = len(share)
        return float(
            self.dqn.remember(
                results(tasks_of(5, count), share, gpu, time),
            )
        )


class TestRemembering:
    def test_a_failed_task_counts_as_twice_the_cpu(self) -> None:
        dqn = Dqn(spec_of(energy_weight=0.0), tasks_of(1, 200))
        tasks = tasks_of(5, 4)
        failed = np.array([False, True, False, True])
        dqn.remember(results(tasks, [1, 1, 0, 1], [0, 0, 0, 0], [1, 0, 1, 0], failed))
        on_cpu, _ = seconds(tasks)
        expected = -np.where(failed, 2 * on_cpu, 1.0) / dqn.scale
        assert dqn.replay.reward[:4].tolist() == pytest.approx(expected.tolist())

    def test_it_knows_which_tasks_it_remembers(self) -> None:
        dqn = Dqn(spec_of(replay=1000), tasks_of(1, 200))
        dqn.pretrain(tasks_of(1, 100))
        assert dqn.replay.tasks() == (-1, -1)
        tasks = tasks_of(5, 1500)
        dqn.remember(results(tasks, np.zeros(1500), np.zeros(1500), np.ones(1500)))
        assert (len(dqn.replay), dqn.replay.tasks()) == (1000, (500, 1499))

    def test_an_action_is_the_cpu_or_a_gpu(self) -> None:
        taught = Taught()
        taught.tell([0, 1, 1, 0], [3, 0, 3, 0], [1.0, 2.0, 3.0, 4.0])
        replay = taught.dqn.replay
        assert replay.action[:4].tolist() == [0, 1, 4, 0]
        paid = -np.array([1.0, 2, 3, 4]) / taught.dqn.scale
        assert replay.reward[:4].tolist() == pytest.approx(paid.tolist())
        assert np.array_equal(replay.state[:4], agent_state(tasks_of(5, 4)))

    def test_fallback_decisions_teach_nothing(self) -> None:
        taught = Taught()
        assert taught.tell([0.3, 0.7], [0, 1], [1.0, 2.0]) == 0
        assert len(taught.dqn.replay) == 0
        taught.tell([0.3, 1.0, 0.99], [0, 1, 2], [1.0, 2.0, 3.0])
        assert len(taught.dqn.replay) == 1
        assert taught.dqn.replay.action[0] == 2
        assert np.array_equal(taught.dqn.replay.state[0], agent_state(tasks_of(5, 3))[1])

    def test_each_result_asks_for_as_many_steps_as_the_spec_says(self) -> None:
        taught = Taught(steps_per_result=0.5, surprise_steps=0)
        assert taught.tell([0.3, 1, 0, 1], [0, 1, 2, 3], [1.0, 2.0, 3.0, 4.0]) == 1.5

    def test_it_does_not_learn_before_it_has_a_batch_to_learn_from(self) -> None:
        taught = Taught(batch=8)
        before = parameters(taught.dqn.policy)
        taught.tell([0.0] * 7, [0] * 7, [1.0] * 7)
        taught.dqn.learn(10)
        assert taught.dqn.steps == 0
        assert equal(before, parameters(taught.dqn.policy))
        taught.tell([0.0], [0], [1.0])
        taught.dqn.learn(10)
        assert taught.dqn.steps == 10
        assert not equal(before, parameters(taught.dqn.policy))
