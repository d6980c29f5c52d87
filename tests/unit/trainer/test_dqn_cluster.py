"""The DQN that observes the cluster: its states, its target, and what it reaches."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from services.scheduler.policies.rl_agent import RlAgent
from services.trainer.agent_transitions import Transitions, TransitionsOfRun
from services.trainer.dueling_network import DuelingNetwork
from services.trainer.learners.rl_agent import AgentLearner, Dqn
from services.trainer.simulated_placements import simulated_placements
from shared.domain.learning.agent_actions import AgentActions
from shared.domain.learning.features import agent_state
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks, take
from shared.domain.workload import Cursor, generate
from shared.errors import SpecError
from tests.unit.trainer.own_results import pretraining_tasks, results_of

TWO_GPUS = {"cluster": {"gpus": 2}}


def spec_of(rate: float = 16.0, *, observes: str = "cluster", **agent: Any) -> RunSpec:
    rule = {"observes": observes, "hidden": 64, "pretrain_steps": 600, **agent}
    workload = {"preset": "hpc", "arrival_rate": rate}
    return RunSpec.parse({"seed": 4, "workload": workload, "learning": {"agent": rule}})


def tasks_of(spec: RunSpec, count: int) -> Tasks:
    return generate(spec, Cursor(), count)[0]


@cache
def pretrained(spec: str) -> bytes:
    run = RunSpec.model_validate_json(spec)
    return AgentLearner(run).pretrain(pretraining_tasks(run)).body


class TestTarget:
    @staticmethod
    def set_values(network: nn.Module | None, q: list[float]) -> None:
        """Make a network's output the same in every state, but for the queues."""
        assert isinstance(network, DuelingNetwork)
        mean = sum(q) / len(q)
        with torch.no_grad():
            for layer, bias in (
                (network.value, torch.tensor([mean])),
                (network.advantage, torch.tensor(q) - mean),
            ):
                layer.weight.zero_()
                layer.bias.copy_(bias)

    def test_the_policy_network_chooses_and_the_target_network_says_what_it_is_worth(self) -> None:
        """Waiting counts a half. In the next state the policy network prefers GPU 0, 1 to 0 and
        to 3 - 8/2; the target network says -2 of that. So the target is -1 + 0.9 * -2 = -2.8. In
        the state GPU 0 has 1 - 2/2 = 0: an error of 2.8, a Huber loss of 2.3."""
        rule = {"observes": "cluster", "discount": 0.9, "hidden": 8, "batch": 8}
        spec = RunSpec.parse({**TWO_GPUS, "learning": {"agent": rule}})
        tasks = tasks_of(spec, 100)
        dqn = Dqn(spec, tasks)
        self.set_values(dqn.policy, [0.0, 1.0, 3.0])
        self.set_values(dqn.target, [5.0, -2.0, 7.0])
        task = agent_state(tasks)[:1]
        state, next_state = (
            np.concatenate([task, np.array([queues], np.float32)], axis=1).repeat(8, axis=0)
            for queues in ([0, 2, 0], [0, 0, 8])
        )
        ones = np.ones(8, np.int64)
        dqn.replay.add(Transitions(ones, state, ones, -np.ones(8), next_state))
        dqn.train(1)
        assert dqn.loss == pytest.approx(0.01 * 2.3, rel=1e-5)

    def test_it_needs_a_discount(self) -> None:
        assert Dqn(spec_of(), tasks_of(spec_of(), 100)).discount == 0.9
        assert Dqn(spec_of(observes="task"), tasks_of(spec_of(), 100)).discount == 0
        with pytest.raises(SpecError, match=r"learning\.agent\.discount.*above 0"):
            spec_of(discount=0)


class TestTransitions:
    def test_of_results_they_have_the_queues_that_each_task_met(self) -> None:
        spec = spec_of(20)
        tasks = tasks_of(spec, 300)
        results = results_of(RlAgent(), pretrained(spec_of().model_dump_json()), spec, tasks)
        made = TransitionsOfRun(spec).of_results(results, scale=0.5)
        assert made.state.shape == (300, 3 + 5)
        assert np.array_equal(made.state[:, :3], agent_state(tasks))
        # A task waits as long as the queue of what it was given to; wide tasks there are none.
        met = 0.5 * made.state[np.arange(300), 3 + made.action]
        assert met == pytest.approx(results.wait, abs=1e-5)
        assert results.wait.max() > 0.1
        assert np.array_equal(made.next_state[:-1], made.state[1:])
        weighed = 0.5 * results.turnaround + 0.5 * results.energy / 80
        assert made.reward == pytest.approx(-weighed / 0.5)

    def test_simulated_queues_follow_from_the_placements(self) -> None:
        """A task takes 2 s on the CPU, 1 s on each of two GPUs; one arrives every 0.5 s to 2 s."""
        spec = RunSpec.parse(TWO_GPUS)
        actions = AgentActions(spec.platform)
        time, gap = np.array([[2.0, 1.0, 1.0]]), np.ones(1)
        made = simulated_placements(time, gap, actions, 3, 3 * 32 * 50, np.random.default_rng(1))
        rows = np.arange(len(made.task))
        assert np.bincount(made.action).tolist() == [32 * 50] * 3
        after = made.queued.copy()
        after[rows, made.action] += time[0, made.action]
        passed = (after - made.next_queued).max(axis=1)
        assert passed.min() >= 1 / 1.5 - 1e-9
        assert passed.max() <= 2 + 1e-9
        assert made.next_queued == pytest.approx(np.maximum(after - passed[:, None], 0.0))
        assert made.queued.max(axis=0).min() > 0.5  # every device has had a queue


class TestLearning:
    def test_it_is_far_better_than_without_the_queues(self) -> None:
        """At 16 tasks a second, which is too much for GPUs alone: a task to the fastest device."""
        spec, blind = spec_of(), spec_of(observes="task")
        tasks = tasks_of(spec, 2000)
        turnaround = {
            run.learning.agent.observes: results_of(
                RlAgent(), pretrained(run.model_dump_json()), run, tasks
            ).turnaround.mean()
            for run in (spec, blind)
        }
        eft = results_of(RlAgent(), None, spec, tasks).turnaround.mean()
        assert turnaround["cluster"] < 1.5 * eft
        assert turnaround["cluster"] < 0.2 * turnaround["task"]

    def test_learning_twice_gives_the_same_bytes(self) -> None:
        spec = spec_of(20)
        body, tasks = pretrained(spec_of().model_dump_json()), tasks_of(spec, 300)
        results = results_of(RlAgent(), body, spec, tasks)
        learner = AgentLearner(spec)
        second = learner.learn(body, results, 100, 2)
        learner.learn(body, results, 50, 3)  # leaves nothing behind
        for same in (learner, AgentLearner(spec)):
            assert same.learn(body, results, 100, 2) == second
        assert second.body != body
        assert second.reason == "after 100 more learning steps"


class TestTasksOfAnotherMagnitude:
    """Sizes a hundred times as large as the preset's, so times a thousand times as long."""

    @staticmethod
    def huge(spec: RunSpec, count: int) -> Tasks:
        tasks = tasks_of(spec, count)
        columns = (tasks.size * 100, tasks.compute_intensity, tasks.memory_required)
        return Tasks(tasks.task_id, *columns, tasks.arrival_time * 1000)

    @pytest.mark.parametrize("observes", ["task", "cluster"])
    def test_the_agent_is_made_anew_for_them(self, observes: str) -> None:
        spec = spec_of(4, observes=observes)
        tasks, learner = self.huge(spec, 1000), AgentLearner(spec)
        body = pretrained(spec.model_dump_json())
        first = results_of(RlAgent(), body, spec, take(tasks, slice(0, 500)))
        update = learner.learn(body, first, 500, 2)
        assert update.reason.startswith("made anew for tasks of another magnitude")
        dqn = Dqn(spec, tasks)
        scale_of_them = dqn.scale
        dqn.restore(update.body)
        assert 0.5 < dqn.scale / scale_of_them < 2
        later = results_of(RlAgent(), update.body, spec, take(tasks, slice(500, 1000)))
        best = np.minimum(*times_by_hand(later.tasks))
        assert later.explored.mean() < 0.1
        if observes == "task":
            assert later.time.sum() < 1.1 * best.sum()
        after = learner.learn(update.body, first, 500, 3)
        assert after.reason == "after 500 more learning steps"

    def test_the_presets_own_tasks_are_not_far(self) -> None:
        for preset in ("gpu_friendly", "cpu_friendly"):
            spec = spec_of()
            other = RunSpec.parse({"seed": 1, "workload": {"preset": preset}})
            assert not Dqn(spec, tasks_of(spec, 500)).is_of_another_magnitude(tasks_of(other, 500))


def times_by_hand(tasks: Tasks) -> tuple[Any, Any]:
    """On the CPU and on a GPU; these tasks fit its memory, or run on the CPU."""
    on_cpu = (tasks.size / 1000) ** 1.5 / (tasks.compute_intensity + 0.5)
    on_gpu = on_cpu / (1 + 3 * tasks.compute_intensity) + tasks.memory_required / 16000
    return on_cpu, np.where(tasks.memory_required > 8000, on_cpu, on_gpu)
