"""The DQN: its network, its reward and its weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.numpy import load

from services.scheduler.policies.rl_agent import RlAgent
from services.scheduler.policies.rl_agent import q_values as worker_q_values
from services.trainer.agent_transitions import reward
from services.trainer.learners.rl_agent import Dqn
from shared.domain.learning.features import agent_state
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from tests.unit.trainer.agents import (
    pretrained,
    q_values,
    seconds,
    spec_of,
    tasks_of,
)


class TestState:
    def test_it_is_log_size_intensity_and_log_memory(self) -> None:
        tasks = Tasks(
            task_id=np.arange(2),
            size=np.array([1.0, np.e**3]),
            compute_intensity=np.array([0.25, 1.0]),
            memory_required=np.array([0.0, np.e**2 - 1]),
            arrival_time=np.zeros(2),
        )
        state = agent_state(tasks)
        assert state.dtype == np.float32
        assert np.allclose(state, [[0, 0.25, 0], [3, 1, 2]])

    def test_the_network_normalises_it_by_the_sample(self) -> None:
        sample = tasks_of(1, 500)
        dqn = Dqn(spec_of(discount=0.5), sample)
        logs = np.log(sample.size)
        assert dqn.policy.centre[0] == pytest.approx(logs.mean(), rel=1e-5)
        assert dqn.policy.spread[0] == pytest.approx(logs.std(), rel=1e-4)
        assert dqn.target is not None
        assert torch.equal(dqn.policy.centre, dqn.target.centre)


class TestNetwork:
    def test_workers_compute_the_same_q_values_without_torch(self) -> None:
        dqn = Dqn(spec_of(hidden=256), tasks_of(1, 500))
        tasks = tasks_of(2, 2000)
        agent = RlAgent()
        q = worker_q_values(agent.load_model(dqn.weights()), agent_state(tasks))
        assert q.shape == (2000, 5)
        assert np.abs(q - q_values(dqn, tasks)).max() < 1e-5

    def test_the_mean_q_value_of_a_state_is_its_value(self) -> None:
        """V + A - mean A: the advantages cancel out."""
        dqn = Dqn(spec_of(), tasks_of(1, 500))
        state = torch.from_numpy(agent_state(tasks_of(2, 100)))
        with torch.no_grad():
            normal = (state - dqn.policy.centre) / dqn.policy.spread
            value = dqn.policy.value(dqn.policy.body(normal)).squeeze(1)
            q = dqn.policy(state)
        assert torch.allclose(q.mean(dim=1), value, atol=1e-5)
        assert (q.max(dim=1).values - q.min(dim=1).values).min() > 1e-3

    @pytest.mark.parametrize("gpus", [1, 4, 7])
    def test_it_has_an_output_for_the_cpu_and_one_for_each_gpu(self, gpus: int) -> None:
        spec = RunSpec.parse({"cluster": {"gpus": gpus}, "learning": {"agent": {"hidden": 32}}})
        dqn = Dqn(spec, tasks_of(1, 100))
        assert q_values(dqn, tasks_of(1, 3)).shape == (3, gpus + 1)
        shapes = {name: tensor.shape for name, tensor in load(dqn.weights()).items()}
        assert shapes["body.0.weight"] == (32, 3)
        assert shapes["body.2.weight"] == (32, 32)


class TestReward:
    @pytest.mark.parametrize(
        ("weight", "expected"),
        [
            (0.0, [-2.0, -0.5]),
            (0.5, [-1.75, -0.5]),  # (2 + 120/80) / 2; (0.5 + 40/80) / 2
            (1.0, [-1.5, -0.5]),
        ],
    )
    def test_it_is_the_weighted_sum_of_time_and_energy(
        self, weight: float, expected: list[float]
    ) -> None:
        """Energy in seconds of a CPU (30 W) and a GPU (50 W) together."""
        time, energy = np.array([2.0, 0.5]), np.array([120.0, 40.0])
        rewards = reward(time, energy, spec_of(energy_weight=weight))
        assert rewards.tolist() == pytest.approx(expected)

    def test_without_power_only_time_counts(self) -> None:
        physics = {"gpu_watts": 0, "cpu_watts": 0}
        spec = RunSpec.parse({"physics": physics, "learning": {"energy_weight": 0.5}})
        assert reward(np.array([2.0]), np.array([0.0]), spec).tolist() == [-1.0]

    def test_it_is_scaled_to_1_on_average(self) -> None:
        """Over all actions of the sample."""
        tasks = tasks_of(3, 300)
        dqn = Dqn(spec_of(energy_weight=0.0), tasks)
        on_cpu, on_gpu = seconds(tasks)
        assert dqn.scale == pytest.approx((on_cpu + 4 * on_gpu).mean() / 5)


class TestWeights:
    def test_a_restored_agent_has_the_same_q_values(self) -> None:
        first = pretrained(1, hidden=16, pretrain_steps=60)
        # From another sample, so with another normalisation until it is restored.
        again = Dqn(first.spec, tasks_of(77, 500, preset="cpu_friendly"))
        tasks = tasks_of(2, 500)
        assert not np.allclose(q_values(first, tasks), q_values(again, tasks))
        again.restore(first.weights())
        assert np.array_equal(q_values(first, tasks), q_values(again, tasks))
        assert again.scale == first.scale
        assert again.weights() == first.weights()

    @pytest.mark.parametrize("discount", [0.0, 0.5])
    def test_a_restored_agent_trains_as_if_it_had_never_stopped(self, discount: float) -> None:
        """Moments of the optimiser, target network and counters are part of the weights."""
        rule = {"hidden": 16, "pretrain_steps": 60, "discount": discount}
        first, tasks = pretrained(1, **rule), tasks_of(1001, 1000)
        again = Dqn(first.spec, tasks_of(77, 500))
        again.restore(first.weights())
        again.add_tasks(tasks)
        first.random, again.random = (np.random.default_rng(7) for _ in range(2))
        for dqn in (first, again):
            dqn.train(70)
        assert again.weights() == first.weights()

    def test_a_restored_agent_continues_to_train(self) -> None:
        first = pretrained(1, hidden=16, pretrain_steps=60)
        again = Dqn(first.spec, tasks_of(1, 500))
        again.restore(first.weights())
        again.pretrain(tasks_of(1, 500))
        assert again.steps == 120
        assert again.weights() != first.weights()

    def test_the_weights_of_another_network_are_an_error(self) -> None:
        body = Dqn(spec_of(hidden=32), tasks_of(1, 100)).weights()
        with pytest.raises(RuntimeError, match="size mismatch"):
            Dqn(spec_of(hidden=16), tasks_of(1, 100)).restore(body)
