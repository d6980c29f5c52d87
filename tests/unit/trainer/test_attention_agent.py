"""The learner of `attention_agent`: its network, what it learns from results, what it publishes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save

from services.trainer.learners.attention_agent import (
    AttentionLearner,
    Network,
    gaps,
    rescaled,
    sample_from,
    sample_of,
)
from services.trainer.observed_queues import queues_before
from shared.domain.learning.attention_network import (
    SHAPES,
    AttentionNetwork,
    DeviceTypes,
    queue_features,
    task_features,
)
from shared.domain.learning.rollouts import Rollouts, Streams
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, take
from shared.domain.times import real_seconds, seconds
from tests.unit.trainer.attention import pretrained, results_of, spec_of, tasks_of

SCALE = 0.1


def random_network(seed: int = 5) -> tuple[Network, dict[str, Floats]]:
    """A network whose corrections are not 0."""
    network = Network(16, 32, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        network.down.normal_(generator=torch.Generator().manual_seed(seed + 1))  # type: ignore[operator]
    tensors = {name: each.detach().numpy() for name, each in network.named_parameters()}
    return network, {**tensors, "time_scale": np.array(SCALE)}


class TestNetwork:
    def test_workers_compute_the_same_corrections_without_torch(self) -> None:
        network, tensors = random_network()
        spec, random = spec_of(), np.random.default_rng(1)
        types, tasks = DeviceTypes.of(spec), tasks_of(spec, 200)
        expected, queued = seconds(tasks, spec), random.exponential(0.3, (200, 5))
        finish = queued + expected[:, types.type_of]
        numpy_network = AttentionNetwork(tensors)
        of_task, of_types = numpy_network.embed(expected, types)
        computed = numpy_network.correction(of_task, of_types[:, types.type_of], queued, finish)
        task, static = task_features(expected, types, SCALE)
        dynamic = queue_features(queued / SCALE, finish / SCALE)
        inputs = (task, static[:, types.type_of], dynamic)
        trained = network(*(torch.tensor(each, dtype=torch.float32) for each in inputs))
        assert computed.std() > 0.01
        assert np.abs(computed - SCALE * trained.detach().numpy()).max() < 1e-4 * SCALE

    def test_the_first_correction_is_0(self) -> None:
        network = Network(8, 8, torch.Generator().manual_seed(1))
        inputs = [torch.rand(3, *shape) for shape in ((4,), (5, 7), (5, 5))]
        assert (network(*inputs) == 0).all()

    def test_a_tensor_of_another_shape_is_refused(self) -> None:
        _, tensors = random_network()
        for name in SHAPES:
            with pytest.raises(ValueError, match="shape"):
                AttentionNetwork({**tensors, name: np.zeros((3, 3, 3))})
        with pytest.raises(ValueError, match="missing"):
            AttentionNetwork({})


class TestSample:
    def test_gaps_are_those_between_arrivals(self) -> None:
        tasks = take(tasks_of(spec_of(), 4), slice(0, 4))
        between = gaps(tasks)
        assert between[1:] == pytest.approx(tasks.arrival_time[1:] - tasks.arrival_time[:-1])
        assert between[0] == pytest.approx(between[1:].mean())

    def test_results_have_their_real_seconds_where_they_ran(self) -> None:
        spec = spec_of(noise=0.5)
        tasks = tasks_of(spec, 300, seed=spec.seed)
        fits = tasks.memory_required <= 8000
        device = np.where(fits & (np.arange(300) % 3 > 0), np.arange(300) % 4, 4)
        sample = sample_from(
            results_of(tasks, device, spec), spec.without_noise, np.random.default_rng(1)
        )
        real, expected = real_seconds(tasks, spec), seconds(tasks, spec)
        kind, rows = spec.platform.type_of[device], np.arange(300)
        assert sample.real[rows, kind] == pytest.approx(real[rows, kind])
        other, both = 1 - kind, np.isfinite(sample.expected).all(axis=1)
        ratio = (sample.real[rows, other] / sample.expected[rows, other].clip(max=1e9))[both]
        assert ratio.std() == pytest.approx(0.5, abs=0.2)  # the noise of others that ran there
        assert sample.expected[both] == pytest.approx(expected[both])

    def test_a_task_that_no_device_can_run_is_left_out(self) -> None:
        spec = RunSpec.parse({"cluster": {"devices": [{"type": "gpu", "memory_mb": 500}]}})
        tasks = tasks_of(spec, 200)
        assert len(sample_of(tasks, spec)) == (tasks.memory_required <= 500).sum()

    def test_queues_are_what_earlier_tasks_have_left(self) -> None:
        spec = spec_of()
        tasks = tasks_of(spec, 100)
        device = np.arange(100) % 5
        device[tasks.memory_required > 8000] = 4
        results = results_of(tasks, device, spec)
        # A task waits exactly as long as its device has work left.
        queued = queues_before(results, device, 5)
        assert queued[np.arange(100), device] == pytest.approx(results.wait, abs=1e-9)


class TestLearning:
    def test_the_first_model_is_better_than_earliest_finish_on_other_tasks(self) -> None:
        spec = spec_of()
        learner = AttentionLearner(spec)
        rollouts = Rollouts(sample_of(tasks_of(spec, 2000, seed=77), spec), learner.types)
        streams = Streams.draw(rollouts.sample, 400, 64, 0.0, np.random.default_rng(9))
        model = AttentionNetwork(load(pretrained(spec.model_dump_json())))
        learned = rollouts.mean_cost(streams, rollouts.corrected(model)).mean()
        assert learned < 0.97 * rollouts.mean_cost(streams, rollouts.earliest_finish).mean()

    def test_learning_twice_gives_the_same_bytes(self) -> None:
        spec = spec_of(noise=0.2)
        tasks = tasks_of(spec, 300)
        results = results_of(tasks, np.where(tasks.memory_required > 8000, 4, 1), spec)
        first = AttentionLearner(spec).pretrain(tasks)
        again = AttentionLearner(spec).pretrain(tasks)
        assert first is not None
        assert again is not None
        assert first.body == again.body
        learner = AttentionLearner(spec)
        second = learner.learn(first.body, results, 100, 2)
        learner.learn(first.body, results, 50, 3)  # leaves nothing behind
        for same in (learner, AttentionLearner(spec)):
            repeated = same.learn(first.body, results, 100, 2)
            assert repeated is not None
            assert second is not None
            assert (repeated.body, repeated.metrics) == (second.body, second.metrics)

    def test_a_large_cluster_is_learned_on_a_small_one_with_as_much_work_per_device(self) -> None:
        devices = [{"type": "gpu", "count": 300}, {"type": "tpu"}, {"type": "cpu", "count": 99}]
        spec = RunSpec.parse({"cluster": {"devices": devices}})
        sample = sample_of(tasks_of(spec, 100), spec)
        rollouts = AttentionLearner(spec)._rollouts(sample)
        assert np.bincount(rollouts.types.type_of).tolist() == [8, 1, 2]
        assert rollouts.sample.gap == pytest.approx(sample.gap * 400 / 11)
        assert rollouts.types.count.tolist() == [300, 1, 99]  # the network sees the real number

    def test_it_learns_without_a_first_model(self) -> None:
        spec = spec_of()
        results = results_of(tasks_of(spec, 200), np.full(200, 4), spec)
        update = AttentionLearner(spec).learn(None, results, 200, 1)
        assert update is not None
        assert AttentionNetwork(load(update.body)).width == 16

    def test_too_few_results_keep_the_model(self) -> None:
        spec = spec_of()
        body = pretrained(spec.model_dump_json())
        results = results_of(tasks_of(spec, 20), np.full(20, 4), spec)
        update = AttentionLearner(spec).learn(body, results, 20, 2)
        assert update is not None
        assert update.body == body
        assert AttentionLearner(spec).learn(None, results, 20, 1) is None

    def test_a_network_that_is_worse_than_the_base_rule_is_replaced(self) -> None:
        spec = spec_of()
        _, tensors = random_network()
        harmful: dict[str, Floats] = {**tensors, "down": 300 * tensors["down"]}
        tasks = tasks_of(spec, 400)
        results = results_of(tasks, np.where(tasks.memory_required > 8000, 4, 1), spec)
        update = AttentionLearner(spec).learn(save(harmful), results, 400, 2)
        assert update is not None
        assert (load(update.body)["down"] == 0).all()
        assert update.metrics["cost_over_eft"] < 1.05

    def test_the_time_scale_follows_tasks_that_are_much_longer(self) -> None:
        _, tensors = random_network()
        assert rescaled(tensors, 1.5 * SCALE) is tensors
        assert rescaled(tensors, 10 * SCALE)["time_scale"] == 10 * SCALE

    def test_what_the_guard_prevents_is_counted(self) -> None:
        spec = spec_of(guard=0.0)
        tasks = tasks_of(spec, 400)
        results = results_of(tasks, np.where(tasks.memory_required > 8000, 4, 1), spec)
        body = pretrained(spec.model_dump_json())
        strict = AttentionLearner(spec).learn(body, results, 400, 2)
        loose = AttentionLearner(spec_of(guard=1e9)).learn(body, results, 400, 2)
        assert strict is not None
        assert loose is not None
        # Three GPUs are idle: only prices and corrections lead elsewhere than `eft`.
        assert 0 < strict.metrics["guarded"] < 1
        assert loose.metrics["guarded"] == 0
