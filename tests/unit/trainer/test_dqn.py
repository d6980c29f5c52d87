"""The agent's learner: its network, its memory, its reward, and how well it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load

from services.scheduler.policies.rl_agent import RlAgent, values
from services.trainer.dqn import Dqn, DuelingNetwork, Replay, Results, reward
from shared.features import agent_state
from shared.spec import RunSpec
from shared.tasks import Floats, Tasks
from shared.workload import Cursor, generate


def spec_of(seed: int = 1, *, energy_weight: float = 0.5, **agent: Any) -> RunSpec:
    learning = {"agent": {"hidden": 16, **agent}, "energy_weight": energy_weight}
    return RunSpec.parse({"seed": seed, "learning": learning})


def tasks_of(seed: int, count: int, first: int = 0, preset: str = "hpc") -> Tasks:
    spec = RunSpec.parse({"seed": seed, "workload": {"preset": preset}})
    return generate(spec, Cursor(generated=first, next_task=first), count)[0]


def seconds(tasks: Tasks) -> tuple[Floats, Floats]:
    """Execution times on the CPU and on a GPU, from the formulas."""
    on_cpu = (tasks.size / 1000) ** 1.5 / (tasks.compute_intensity + 0.5)
    on_gpu = on_cpu / (1 + 3 * tasks.compute_intensity) + tasks.memory_required / 16000
    return on_cpu, np.where(tasks.memory_required > 8000, on_cpu, on_gpu)


def worth(dqn: Dqn, tasks: Tasks) -> Floats:
    with torch.no_grad():
        return np.asarray(dqn.policy(torch.from_numpy(agent_state(tasks))).numpy())


def parameters(network: DuelingNetwork) -> list[Any]:
    return [parameter.detach().clone() for parameter in network.parameters()]


def equal(one: list[Any], other: list[Any]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


class TestState:
    def test_it_is_log_size_intensity_and_log_memory(self) -> None:
        tasks = Tasks(
            task_id=np.arange(2),
            size=np.array([1.0, np.e**3]),
            compute_intensity=np.array([0.25, 1.0]),
            memory_required=np.array([0.0, np.e**2 - 1]),
            arrival_time=np.zeros(2),
        )
        found = agent_state(tasks)
        assert found.dtype == np.float32
        assert np.allclose(found, [[0, 0.25, 0], [3, 1, 2]])

    def test_the_network_sees_it_normalised_by_the_sample(self) -> None:
        sample = tasks_of(1, 500)
        dqn = Dqn(spec_of(), sample)
        logs = np.log(sample.size)
        assert dqn.policy.centre[0] == pytest.approx(logs.mean(), rel=1e-5)
        assert dqn.policy.spread[0] == pytest.approx(logs.std(), rel=1e-4)
        assert torch.equal(dqn.policy.centre, dqn.target.centre)


class TestNetwork:
    def test_workers_compute_the_same_values_without_torch(self) -> None:
        dqn = Dqn(spec_of(hidden=256), tasks_of(1, 500))
        tasks = tasks_of(2, 2000)
        agent = RlAgent()
        found = values(agent.open(dqn.weights()), agent_state(tasks))
        assert found.shape == (2000, 5)
        assert np.abs(found - worth(dqn, tasks)).max() < 1e-5

    def test_the_advantages_of_a_state_cancel_out(self) -> None:
        """V + A - mean A: the mean over the actions is the value itself."""
        dqn = Dqn(spec_of(), tasks_of(1, 500))
        state = torch.from_numpy(agent_state(tasks_of(2, 100)))
        with torch.no_grad():
            normal = (state - dqn.policy.centre) / dqn.policy.spread
            value = dqn.policy.value(dqn.policy.body(normal)).squeeze(1)
            found = dqn.policy(state)
        assert torch.allclose(found.mean(dim=1), value, atol=1e-5)
        assert (found.max(dim=1).values - found.min(dim=1).values).min() > 1e-3

    @pytest.mark.parametrize("gpus", [1, 4, 7])
    def test_it_has_an_output_for_the_cpu_and_one_for_each_gpu(self, gpus: int) -> None:
        spec = RunSpec.parse({"cluster": {"gpus": gpus}, "learning": {"agent": {"hidden": 32}}})
        dqn = Dqn(spec, tasks_of(1, 100))
        assert worth(dqn, tasks_of(1, 3)).shape == (3, gpus + 1)
        shapes = {name: tensor.shape for name, tensor in load(dqn.weights()).items()}
        assert shapes["body.0.weight"] == (32, 3)
        assert shapes["body.2.weight"] == (32, 32)


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


class TestReward:
    @pytest.mark.parametrize(
        ("weight", "expected"),
        [
            (0.0, [-2.0, -0.5]),
            (0.5, [-1.75, -0.5]),  # (2 + 120/80) / 2; (0.5 + 40/80) / 2
            (1.0, [-1.5, -0.5]),
        ],
    )
    def test_it_is_time_and_energy_by_their_weight(
        self, weight: float, expected: list[float]
    ) -> None:
        """Energy in seconds of a CPU (30 W) and a GPU (50 W) together."""
        found = reward(np.array([2.0, 0.5]), np.array([120.0, 40.0]), spec_of(energy_weight=weight))
        assert found.tolist() == pytest.approx(expected)

    def test_a_cluster_that_needs_no_power_is_paid_by_time(self) -> None:
        physics = {"gpu_watts": 0, "cpu_watts": 0}
        spec = RunSpec.parse({"physics": physics, "learning": {"energy_weight": 0.5}})
        assert reward(np.array([2.0]), np.array([0.0]), spec).tolist() == [-1.0]

    def test_it_is_scaled_to_1_on_average(self) -> None:
        """Over all actions of the tasks that it was made with."""
        tasks = tasks_of(3, 300)
        dqn = Dqn(spec_of(energy_weight=0.0), tasks)
        on_cpu, on_gpu = seconds(tasks)
        assert dqn.scale == pytest.approx((on_cpu + 4 * on_gpu).mean() / 5)


def results(tasks: Tasks, share: Any, gpu: Any, time: Any, failed: Any = None) -> Results:
    return Results(
        tasks=tasks,
        share=np.asarray(share, dtype=np.float64),
        gpu=np.asarray(gpu, dtype=np.int64),
        time=np.asarray(time, dtype=np.float64),
        energy=np.zeros(len(tasks)),
        failed=np.zeros(len(tasks), np.bool_) if failed is None else failed,
    )


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


def pretrained(seed: int, **agent: Any) -> Dqn:
    tasks = tasks_of(seed + 1000, 1000)
    dqn = Dqn(RunSpec.parse({"seed": seed, "learning": {"agent": agent}}), tasks)
    dqn.pretrain(tasks)
    return dqn


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
        assert dqn.exploration == 0.2
        assert load(dqn.weights())["exploration"].tolist() == [0.2]

    def test_it_calms_down_when_results_are_as_expected_again(self, dqn: Dqn) -> None:
        self.told(dqn, 0, 1.0)
        self.told(dqn, 100, 20.0)
        self.told(dqn, 200, 1.0)
        # Halved every 15 results.
        assert dqn.exploration == pytest.approx(0.2 * 0.5 ** (100 / 15))


class TestWeights:
    def test_an_agent_that_is_brought_back_finds_everything_worth_the_same(self) -> None:
        first = pretrained(1, hidden=16, pretrain_steps=60)
        # Made with other tasks, so normalised otherwise until it is restored.
        again = Dqn(first.spec, tasks_of(77, 500, preset="cpu_friendly"))
        tasks = tasks_of(2, 500)
        assert not np.allclose(worth(first, tasks), worth(again, tasks))
        again.restore(first.weights())
        assert np.array_equal(worth(first, tasks), worth(again, tasks))
        assert again.scale == first.scale
        assert equal(parameters(again.policy), parameters(again.target))
        assert again.weights() == first.weights()

    def test_it_goes_on_learning_from_there(self) -> None:
        first = pretrained(1, hidden=16, pretrain_steps=60)
        again = Dqn(first.spec, tasks_of(1, 500))
        again.restore(first.weights())
        again.pretrain(tasks_of(1, 500))
        assert again.steps == 60
        assert again.weights() != first.weights()

    def test_the_weights_of_another_network_are_not_taken(self) -> None:
        body = Dqn(spec_of(hidden=32), tasks_of(1, 100)).weights()
        with pytest.raises(RuntimeError, match="size mismatch"):
            Dqn(spec_of(hidden=16), tasks_of(1, 100)).restore(body)
