"""`attention_agent` with a model: the policy contract, its guard, any number of devices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from safetensors.numpy import save

from services.scheduler.policies.attention_agent import AttentionAgent, Embedded
from services.scheduler.policies.eft import EarliestFinish
from services.scheduler.policy import ClusterPolicy
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.cluster.observation import Observation
from shared.domain.cluster.virtual_cluster import Cluster
from shared.domain.learning.attention_network import AttentionNetwork, DeviceTypes
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Floats, Tasks
from shared.domain.times import seconds
from shared.domain.workload import Cursor, generate
from tests.unit.scheduler.cluster_policy_contract import ClusterPolicyContract


def tensors(strength: float = 1.0) -> dict[str, Floats]:
    """A network with random weights; `strength` is that of its corrections."""
    random = np.random.default_rng(4)
    shapes = {
        "task": (4, 8), "task_bias": (8,), "static": (7, 8), "static_bias": (8,),
        "dynamic": (5, 8), "query": (8, 8), "value": (8, 8), "up": (8, 12), "up_bias": (12,),
        "down": (12,),
    }  # fmt: skip
    weights = {name: 0.5 * random.standard_normal(shape) for name, shape in shapes.items()}
    return {**weights, "down": strength * weights["down"], "time_scale": np.array(0.1)}


class WithModel(AttentionAgent):
    """`attention_agent` with its model, as a worker uses it."""

    def __init__(self, strength: float = 1.0) -> None:
        self._model = self.load_model(save(tensors(strength)))

    def prepare(self, tasks: Tasks, spec: RunSpec) -> Embedded:
        return self.prepare_with(self._model, tasks, spec)


class TestAttentionAgent(ClusterPolicyContract):
    @pytest.fixture
    def make_policy(self) -> Callable[[], ClusterPolicy]:
        return WithModel


def decide(policy: ClusterPolicy, spec: RunSpec, tasks: Tasks) -> Decisions:
    cluster = Cluster.idle(len(spec.platform))
    prepared = policy.prepare(tasks, spec)
    view = ClusterView(cluster, Observation(cluster.copy()), tasks, spec, prepared=prepared)
    return policy.decide(tasks, view, spec)


def run_of(guard: float, price: float = 0.0) -> tuple[RunSpec, Tasks]:
    attention = {"guard": guard, "accelerator_price": price, "cpu_price": 2 * price}
    spec = RunSpec.parse(
        {"workload": {"arrival_rate": 24}, "learning": {"attention": attention}, "seed": 8}
    )
    return spec, generate(spec, Cursor(), 500)[0]


def devices(decisions: Decisions) -> list[int]:
    assert decisions.device is not None
    assert decisions.cpu is not None
    return [int(device) for device in np.maximum(decisions.device, decisions.cpu)]


class TestRule:
    def test_before_the_first_model_it_is_earliest_finish(self) -> None:
        spec, tasks = run_of(4.0, 1.0)
        assert devices(decide(AttentionAgent(), spec, tasks)) == devices(
            decide(EarliestFinish(), spec, tasks)
        )

    def test_without_prices_and_corrections_it_is_earliest_finish(self) -> None:
        spec, tasks = run_of(1e9)
        chosen = devices(decide(WithModel(0.0), spec, tasks))
        assert chosen == devices(decide(EarliestFinish(), spec, tasks))

    def test_a_guard_of_0_makes_it_earliest_finish_whatever_the_network_says(self) -> None:
        spec, tasks = run_of(0.0)
        earliest = decide(EarliestFinish(), spec, tasks)
        guarded, free = decide(WithModel(50.0), spec, tasks), decide(WithModel(50.0), *run_of(1e9))
        assert devices(guarded) == devices(earliest)
        assert devices(free) != devices(earliest)

    def test_no_choice_finishes_later_than_the_guard_allows(self) -> None:
        spec, tasks = run_of(0.5, 1.0)
        chosen = devices(decide(WithModel(50.0), spec, tasks))
        free, type_of, late = np.zeros(5), spec.platform.type_of, 0
        expected = seconds(tasks, spec)
        expected[tasks.memory_required > 8000, 0] = np.inf
        for row, device in enumerate(chosen):
            now = tasks.arrival_time[row]
            finish = np.maximum(free, now) + expected[row, type_of]
            assert finish[device] - now <= 1.5 * (finish.min() - now) + 1e-9
            late += finish[device] > finish.min() + 1e-9
            free[device] = finish[device]
        assert late > 20


class TestAnyCluster:
    @staticmethod
    def corrections(order: list[int]) -> Floats:
        """The corrections of one task on devices of three types, in this order."""
        spec = RunSpec.parse(
            {"cluster": {"devices": [{"type": name, "count": 2} for name in ("a", "b", "cpu")]}}
        )
        types, network = DeviceTypes.of(spec), AttentionNetwork(tensors())
        of_task, of_types = network.embed(np.array([[0.1, 0.4, np.inf]]), types)
        queued, type_of = np.array([0.0, 0.2, 0.05, 0.0, 0.7, 0.1])[order], types.type_of[order]
        finish = queued + np.array([0.1, 0.4, np.inf])[type_of]
        devices = of_types[0][type_of]
        return network.correction(of_task[0], devices, queued, finish).astype(np.float64)

    def test_the_order_of_devices_makes_no_difference(self) -> None:
        usual = self.corrections([0, 1, 2, 3, 4, 5])
        order = [4, 2, 0, 5, 1, 3]
        assert usual.std() > 0.001
        assert self.corrections(order) == pytest.approx(usual[order])

    def test_one_model_serves_500_devices(self) -> None:
        cluster = {"devices": [{"type": "gpu", "count": 400}, {"type": "cpu", "count": 100}]}
        spec = RunSpec.parse({"cluster": cluster, "workload": {"arrival_rate": 2000}})
        tasks, _ = generate(spec, Cursor(), 60)
        assert len(set(devices(decide(WithModel(), spec, tasks)))) > 20

    def test_a_task_that_no_device_can_run_is_placed_and_fails(self) -> None:
        gpus = {"devices": [{"type": "gpu", "count": 2, "memory_mb": 500}]}
        spec = RunSpec.parse({"cluster": gpus})
        tasks, _ = generate(spec, Cursor(), 50)
        assert (tasks.memory_required > 500).any()
        assert set(devices(decide(WithModel(), spec, tasks))) <= {0, 1}

    def test_a_model_of_something_else_is_refused(self) -> None:
        with pytest.raises(ValueError, match="missing"):
            AttentionAgent().load_model(save({"weights": np.zeros(3)}))
