"""The contract of every policy: subclasses say how the policy is made."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from services.scheduler.policy import Policy
from services.scheduler.worker import decide
from shared.domain.schedulers import check_scheduler_name
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.domain.workload import Cursor, generate
from shared.messages import batches
from shared.messages.batches import Batch, Envelope

COUNT = 1000
SPECS: dict[str, dict[str, Any]] = {
    "default": {},
    "overlapped": {"physics": {"split": "overlapped"}, "cluster": {"gpus": 1}},
    "paged": {"physics": {"memory_policy": "page"}, "cluster": {"gpus": 7, "cpus": 2}},
    "failing": {"physics": {"memory_policy": "fail"}, "cluster": {"gpu_memory_mb": 100}},
    "small": {"workload": {"preset": "cpu_friendly"}, "seed": 2**63 - 1},
    "mixed": {
        "cluster": {
            "devices": [
                {"type": "cpu", "count": 2, "node": "big"},
                {"type": "a100", "count": 4, "node": "big", "speed": 4, "memory_mb": 40_000},
                {"type": "cpu", "node": "small"},
                {"type": "t4", "count": 3, "node": "small", "memory_mb": 2000},
            ]
        },
        "physics": {"noise": 0.3},
    },
}


def columns(tasks: Tasks) -> list[Any]:
    return [tasks.task_id, tasks.size, tasks.compute_intensity, tasks.memory_required,
            tasks.arrival_time]  # fmt: skip


def part_of(tasks: Tasks, start: int, stop: int) -> Tasks:
    return Tasks(*(column[start:stop] for column in columns(tasks)))


def are_equal(one: Decisions, other: Decisions) -> bool:
    def equal(a: Any, b: Any) -> bool:
        return (a is None) == (b is None) and (a is None or np.array_equal(a, b))

    return all(
        equal(getattr(one, name), getattr(other, name))
        for name in ("gpu_fraction", "device", "cpu", "explored", "probability", "model_version")
    )


class PolicyContract:
    @pytest.fixture
    def make_policy(self) -> Callable[[], Policy]:
        """Makes the policy as each worker does."""
        raise NotImplementedError

    @pytest.fixture
    def policy(self, make_policy: Callable[[], Policy]) -> Policy:
        return make_policy()

    @pytest.fixture(params=SPECS)
    def spec(self, request: pytest.FixtureRequest) -> RunSpec:
        return RunSpec.parse(SPECS[request.param])

    @pytest.fixture
    def tasks(self, spec: RunSpec) -> Tasks:
        """Read-only, like the columns of a message."""
        tasks, _ = generate(spec, Cursor(), COUNT)
        for column in columns(tasks):
            column.flags.writeable = False
        return tasks

    def test_its_name_is_valid_in_a_subject(self, policy: Policy) -> None:
        assert check_scheduler_name(policy.name) == policy.name

    def test_it_has_a_docstring(self, policy: Policy) -> None:
        assert len(type(policy).__doc__ or "") > 20

    def test_every_task_has_a_share_from_0_to_1(
        self, policy: Policy, tasks: Tasks, spec: RunSpec
    ) -> None:
        share = np.asarray(policy.decide(tasks, spec).gpu_fraction)
        assert share.shape == (COUNT,)
        assert share.dtype == np.float64
        assert ((share >= 0) & (share <= 1)).all()

    async def test_every_task_has_devices_of_the_cluster(
        self, policy: Policy, tasks: Tasks, spec: RunSpec
    ) -> None:
        batch = Batch(Envelope("tasks", "run", 0, 0.0), batches.task_rows(tasks))
        decided = decide(batch, policy, spec)
        platform = spec.platform
        assert set(batches.column(decided.rows, "device").tolist()) == set(platform.accelerators)
        assert set(batches.column(decided.rows, "cpu").tolist()) == set(platform.cpus)
        body = batches.encode(decided.envelope, decided.rows)
        assert batches.decode(body, f"decisions.run.{policy.name}").rows.equals(decided.rows)

    def test_replicas_agree(
        self, make_policy: Callable[[], Policy], tasks: Tasks, spec: RunSpec
    ) -> None:
        policy, replica = make_policy(), make_policy()
        replica.decide(part_of(tasks, 500, 700), spec)  # has decided other tasks before
        assert are_equal(policy.decide(tasks, spec), replica.decide(tasks, spec))

    def test_it_keeps_no_state(self, policy: Policy, tasks: Tasks, spec: RunSpec) -> None:
        first = policy.decide(tasks, spec)
        for _ in range(3):
            assert are_equal(policy.decide(tasks, spec), first)

    def test_decisions_do_not_depend_on_the_size_or_order_of_batches(
        self, policy: Policy, tasks: Tasks, spec: RunSpec
    ) -> None:
        whole = policy.decide(tasks, spec)
        parts = list(pairwise([0, 1, 2, 50, 51, 400, 999, COUNT]))
        random.Random(3).shuffle(parts)
        for start, stop in parts:
            part = policy.decide(part_of(tasks, start, stop), spec)
            assert np.array_equal(part.gpu_fraction, whole.gpu_fraction[start:stop])
            for name in ("device", "cpu"):
                chosen = getattr(whole, name)
                if chosen is not None:
                    assert np.array_equal(getattr(part, name), chosen[start:stop])

    def test_it_does_not_change_the_tasks(
        self, policy: Policy, tasks: Tasks, spec: RunSpec
    ) -> None:
        # Writable here, to catch a policy that writes only where it can.
        writable = Tasks(*(column.copy() for column in columns(tasks)))
        decisions = policy.decide(writable, spec)
        for after, before in zip(columns(writable), columns(tasks), strict=True):
            assert np.array_equal(after, before)
        assert len(decisions.gpu_fraction) == COUNT
