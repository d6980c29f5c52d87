"""The replay buffer of the DQN, and how results are added to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from services.trainer.agent_transitions import Transitions, following
from services.trainer.learners.rl_agent import Dqn
from services.trainer.replay_buffer import ReplayBuffer
from shared.domain.learning.features import agent_state
from tests.unit.trainer.agents import equal, parameters, results, spec_of, tasks_of


class NumberedTransitions:
    """A buffer of transitions: state (n, n, n), action n % 5, reward -n."""

    def __init__(self, size: int) -> None:
        self.replay = ReplayBuffer(size, 3)
        self.next = 1

    def add(self, count: int) -> None:
        numbers = np.arange(self.next, self.next + count)
        state = np.repeat(numbers[:, None], 3, axis=1).astype(np.float32)
        rewards = -numbers.astype(np.float64)
        self.replay.add(Transitions(numbers, state, numbers % 5, rewards, following(state)))
        self.next += count

    def sample(self, count: int = 5000, newest: int = 10**6) -> list[int]:
        """The numbers of a sample; checks that all columns agree."""
        random = np.random.default_rng(0)
        state, action, reward, next_state = self.replay.sample(count, newest, random)
        numbers = state[:, 0].numpy().astype(int)
        assert len(numbers) == count
        assert np.array_equal(state.numpy(), np.repeat(numbers[:, None], 3, axis=1))
        assert np.array_equal(action.numpy(), numbers % 5)
        assert np.array_equal(reward.numpy(), -numbers)
        assert set((next_state[:, 0].numpy() - numbers).tolist()) <= {0, 1}
        return numbers.tolist()


class TestReplay:
    def test_empty_rows_are_not_sampled(self) -> None:
        buffer = NumberedTransitions(100)
        buffer.add(7)
        assert len(buffer.replay) == 7
        assert set(buffer.sample()) == set(range(1, 8))

    def test_a_full_buffer_drops_the_oldest(self) -> None:
        buffer = NumberedTransitions(10)
        for count in (4, 4, 4, 3):
            buffer.add(count)
        assert len(buffer.replay) == 10
        assert set(buffer.sample()) == set(range(6, 16))

    def test_rows_that_end_at_the_end_of_the_buffer_fill_it(self) -> None:
        buffer = NumberedTransitions(10)
        buffer.add(10)
        assert set(buffer.sample()) == set(range(1, 11))
        buffer.add(1)
        assert set(buffer.sample()) == set(range(2, 12))

    @pytest.mark.parametrize("before", [0, 3])
    def test_of_more_rows_than_the_buffer_has_the_newest_stay(self, before: int) -> None:
        buffer = NumberedTransitions(10)
        if before:
            buffer.add(before)
        buffer.add(25)
        assert set(buffer.sample()) == set(range(before + 16, before + 26))

    def test_the_next_state_is_that_of_the_next_task(self) -> None:
        buffer = NumberedTransitions(10)
        buffer.add(4)
        assert buffer.replay.next_state[:4, 0].tolist() == [2, 3, 4, 4]

    def test_half_of_a_sample_is_from_the_newest(self) -> None:
        buffer = NumberedTransitions(1000)
        buffer.add(1200)
        numbers = buffer.sample(10_000, newest=100)
        # Half from the newest, and a tenth of the other half: 0.55, to five standard errors.
        share = np.mean([number > 1100 for number in numbers])
        assert share == pytest.approx(0.55, abs=5 * (0.55 * 0.45 / 10_000) ** 0.5)
        assert set(numbers) <= set(range(201, 1201))
        assert min(numbers) < 250

    def test_a_sample_of_an_odd_number_is_complete(self) -> None:
        buffer = NumberedTransitions(10)
        buffer.add(3)
        assert len(buffer.sample(7, newest=1)) == 7


def new_dqn(**agent: Any) -> Dqn:
    return Dqn(spec_of(energy_weight=0.0, **agent), tasks_of(1, 200))


def add(dqn: Dqn, share: list[float], gpu: list[int], time: list[float]) -> float:
    return dqn.add_results(results(tasks_of(5, len(share)), share, gpu, time))


class TestAddResults:
    def test_it_keeps_the_range_of_task_ids(self) -> None:
        dqn = Dqn(spec_of(replay=1000), tasks_of(1, 200))
        dqn.pretrain(tasks_of(1, 100))
        assert dqn.replay.task_range() == (-1, -1)
        tasks = tasks_of(5, 1500)
        dqn.add_results(results(tasks, np.zeros(1500), np.zeros(1500), np.ones(1500)))
        assert (len(dqn.replay), dqn.replay.task_range()) == (1000, (500, 1499))

    def test_an_action_is_the_cpu_or_a_gpu(self) -> None:
        dqn = new_dqn()
        add(dqn, [0, 1, 1, 0], [3, 0, 3, 0], [1.0, 2.0, 3.0, 4.0])
        replay = dqn.replay
        assert replay.action[:4].tolist() == [0, 1, 4, 0]
        expected = -np.array([1.0, 2, 3, 4]) / dqn.scale
        assert replay.reward[:4].tolist() == pytest.approx(expected.tolist())
        assert np.array_equal(replay.state[:4], agent_state(tasks_of(5, 4)))

    def test_fallback_decisions_are_ignored(self) -> None:
        dqn = new_dqn()
        assert add(dqn, [0.3, 0.7], [0, 1], [1.0, 2.0]) == 0
        assert len(dqn.replay) == 0
        add(dqn, [0.3, 1.0, 0.99], [0, 1, 2], [1.0, 2.0, 3.0])
        assert len(dqn.replay) == 1
        assert dqn.replay.action[0] == 2
        assert np.array_equal(dqn.replay.state[0], agent_state(tasks_of(5, 3))[1])

    def test_each_result_makes_as_many_steps_due_as_in_the_spec(self) -> None:
        dqn = new_dqn(steps_per_result=0.5, surprise_steps=0)
        assert add(dqn, [0.3, 1, 0, 1], [0, 1, 2, 3], [1.0, 2.0, 3.0, 4.0]) == 1.5

    def test_training_starts_with_a_full_batch(self) -> None:
        dqn = new_dqn(batch=8)
        before = parameters(dqn.policy)
        add(dqn, [0.0] * 7, [0] * 7, [1.0] * 7)
        dqn.train(10)
        assert dqn.steps == 0
        assert equal(before, parameters(dqn.policy))
        add(dqn, [0.0], [0], [1.0])
        dqn.train(10)
        assert dqn.steps == 10
        assert not equal(before, parameters(dqn.policy))
