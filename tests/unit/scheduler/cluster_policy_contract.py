"""The contract of every cluster policy: subclasses say how the policy is made."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from services.scheduler.cluster_worker import ClusterCopy, place
from services.scheduler.policy import ClusterPolicy
from services.simulator.simulation import Simulation
from shared.domain.schedulers import check_scheduler_name
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks, take
from shared.domain.workload import Cursor, generate
from shared.messages import batches
from shared.messages.batches import Batch, Envelope
from tests.unit.scheduler.policy_contract import SPECS

COUNT = 400
NOISE = {"physics": {"noise": 0.4}, "workload": {"arrival_rate": 20}}
DAG = {"workload": {"arrival_rate": 12, "dependencies": {"probability": 0.4}}}
CASES: dict[str, dict[str, Any]] = {**SPECS, "noisy": NOISE, "dag": DAG}


def serve(policy: ClusterPolicy, spec: RunSpec, tasks: Tasks, edges: list[int]) -> list[Any]:
    """Place the tasks in batches between these edges; returns the rows' columns, the worker's last
    copy and the simulator's state."""
    copy, simulation = ClusterCopy.new(spec), Simulation.new(spec)
    decided: dict[str, list[Any]] = {}
    for number, edge in enumerate(pairwise(edges)):
        rows = batches.task_rows(take(tasks, slice(*edge)))
        batch = Batch(Envelope("tasks", "run", number, 0.0), rows)
        prepared = policy.prepare(batches.tasks_of(rows), spec)
        decision, copy = place(batch, policy, copy, spec, prepared)
        body = batches.encode(decision.envelope, decision.rows)
        decision = batches.decode(body, f"decisions.run.{policy.name}")
        _, simulation = simulation.advance(decision.rows)
        for name, values in batches.complete(decision.rows, "decisions").to_pydict().items():
            decided.setdefault(name, []).extend(values)
    return [decided, copy, simulation]


class ClusterPolicyContract:
    @pytest.fixture
    def make_policy(self) -> Callable[[], ClusterPolicy]:
        """Makes the policy as each worker does."""
        raise NotImplementedError

    @pytest.fixture
    def policy(self, make_policy: Callable[[], ClusterPolicy]) -> ClusterPolicy:
        return make_policy()

    @pytest.fixture(params=CASES)
    def spec(self, request: pytest.FixtureRequest) -> RunSpec:
        return RunSpec.parse(CASES[request.param])

    @pytest.fixture
    def tasks(self, spec: RunSpec) -> Tasks:
        return generate(spec, Cursor(), COUNT)[0]

    def test_its_name_is_valid_in_a_subject(self, policy: ClusterPolicy) -> None:
        assert check_scheduler_name(policy.name) == policy.name

    def test_it_has_a_docstring(self, policy: ClusterPolicy) -> None:
        assert len(type(policy).__doc__ or "") > 20

    def test_every_task_has_devices_of_the_cluster_and_an_estimate(
        self, policy: ClusterPolicy, tasks: Tasks, spec: RunSpec
    ) -> None:
        decided, *_ = serve(policy, spec, tasks, [0, COUNT])
        platform = spec.platform
        assert set(decided["device"]) <= set(platform.accelerators.tolist())
        assert set(decided["cpu"]) <= set(platform.cpus.tolist())
        assert all(0 <= share <= 1 for share in decided["gpu_fraction"])
        assert all(time > 0 for time in decided["expected_time"])

    def test_replicas_agree_however_the_tasks_are_cut_into_batches(
        self, make_policy: Callable[[], ClusterPolicy], tasks: Tasks, spec: RunSpec
    ) -> None:
        whole = serve(make_policy(), spec, tasks, [0, COUNT])
        for edges in ([*range(30), 51, 300, COUNT], [*range(0, COUNT, 20), COUNT]):
            assert serve(make_policy(), spec, tasks, edges)[0] == whole[0]

    def test_the_simulators_checkpoint_is_the_workers_copy(
        self, policy: ClusterPolicy, tasks: Tasks, spec: RunSpec
    ) -> None:
        _, copy, simulation = serve(policy, spec, tasks, [0, 130, 131, COUNT])
        stored = json.loads(json.dumps(simulation.state()))
        assert stored["cluster"] == json.loads(json.dumps(copy.cluster.to_json()))
        assert stored["observation"] == json.loads(json.dumps(copy.observation.to_json()))
        assert ClusterCopy.from_state(3, stored).state() == copy.state()

    def test_it_does_not_change_the_tasks(
        self, policy: ClusterPolicy, tasks: Tasks, spec: RunSpec
    ) -> None:
        before = [np.array(column) for column in (tasks.size, tasks.arrival_time)]
        serve(policy, spec, tasks, [0, COUNT])
        assert np.array_equal(before[0], tasks.size)
        assert np.array_equal(before[1], tasks.arrival_time)
