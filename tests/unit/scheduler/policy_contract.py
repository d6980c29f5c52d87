"""What every policy owes the arena. A policy's tests inherit it and say which policy they mean."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from services.scheduler.policy import Policy, load
from services.scheduler.worker import decide
from shared import batches
from shared.batches import Batch, Envelope
from shared.spec import RunSpec, check_scheduler_name
from shared.tasks import Decisions, Tasks
from shared.workload import Cursor, generate

COUNT = 1000
SPECS: dict[str, dict[str, Any]] = {
    "default": {},
    "overlapped": {"physics": {"split": "overlapped"}, "cluster": {"gpus": 1}},
    "paged": {"physics": {"memory_policy": "page"}, "cluster": {"gpus": 7, "cpus": 2}},
    "failing": {"physics": {"memory_policy": "fail"}, "cluster": {"gpu_memory_mb": 100}},
    "small": {"workload": {"preset": "cpu_friendly"}, "seed": 2**63 - 1},
}


def columns(tasks: Tasks) -> list[Any]:
    return [tasks.task_id, tasks.size, tasks.compute_intensity, tasks.memory_required,
            tasks.arrival_time]  # fmt: skip


def stretch(tasks: Tasks, start: int, stop: int) -> Tasks:
    return Tasks(*(column[start:stop] for column in columns(tasks)))


def same(one: Decisions, other: Decisions) -> bool:
    def equal(a: Any, b: Any) -> bool:
        return (a is None) == (b is None) and (a is None or np.array_equal(a, b))

    return all(
        equal(getattr(one, name), getattr(other, name))
        for name in ("gpu_fraction", "gpu", "explored", "probability", "model_version")
    )


class PolicyContract:
    reference: str

    def made(self, spec: RunSpec) -> Policy:
        """The policy as one worker has it."""
        return load(self.reference)

    @pytest.fixture
    def policy(self) -> Policy:
        return load(self.reference)

    @pytest.fixture(params=SPECS)
    def spec(self, request: pytest.FixtureRequest) -> RunSpec:
        return RunSpec.parse(SPECS[request.param])

    @pytest.fixture
    def tasks(self, spec: RunSpec) -> Tasks:
        """Read-only, as the columns of a message are."""
        tasks, _ = generate(spec, Cursor(), COUNT)
        for column in columns(tasks):
            column.flags.writeable = False
        return tasks

    def test_it_has_a_name_that_a_subject_can_carry(self, policy: Policy) -> None:
        assert check_scheduler_name(policy.name) == policy.name

    def test_it_says_what_it_does(self, policy: Policy) -> None:
        assert len(type(policy).__doc__ or "") > 20

    def test_every_task_gets_a_share_from_0_to_1(
        self, policy: Policy, tasks: Tasks, spec: RunSpec
    ) -> None:
        share = np.asarray(policy.decide(tasks, spec).gpu_fraction)
        assert share.shape == (COUNT,)
        assert share.dtype == np.float64
        assert ((share >= 0) & (share <= 1)).all()

    async def test_every_task_gets_a_gpu_that_the_cluster_has(
        self, policy: Policy, tasks: Tasks, spec: RunSpec
    ) -> None:
        batch = Batch(Envelope("tasks", "run", 0, 0.0), batches.task_rows(tasks))
        decided = await decide(batch, policy, None, spec)
        gpu = batches.column(decided.rows, "gpu")
        assert set(gpu.tolist()) == set(range(spec.cluster.gpus))
        body = batches.encode(decided.envelope, decided.rows)
        assert batches.decode(body, f"decisions.run.{policy.name}").rows.equals(decided.rows)

    def test_replicas_agree(self, policy: Policy, tasks: Tasks, spec: RunSpec) -> None:
        replica = self.made(spec)
        replica.decide(stretch(tasks, 500, 700), spec)  # has seen other work before
        assert same(policy.decide(tasks, spec), replica.decide(tasks, spec))

    def test_it_keeps_no_state(self, policy: Policy, tasks: Tasks, spec: RunSpec) -> None:
        first = policy.decide(tasks, spec)
        for _ in range(3):
            assert same(policy.decide(tasks, spec), first)

    def test_neither_the_size_nor_the_order_of_batches_matters(
        self, policy: Policy, tasks: Tasks, spec: RunSpec
    ) -> None:
        whole = policy.decide(tasks, spec)
        cuts = [0, 1, 2, 50, 51, 400, 999, COUNT]
        stretches = list(pairwise(cuts))
        random.Random(3).shuffle(stretches)
        for start, stop in stretches:
            part = policy.decide(stretch(tasks, start, stop), spec)
            assert np.array_equal(part.gpu_fraction, whole.gpu_fraction[start:stop])
            if whole.gpu is not None:
                assert part.gpu is not None
                assert np.array_equal(part.gpu, whole.gpu[start:stop])

    def test_it_leaves_the_tasks_as_they_are(
        self, policy: Policy, tasks: Tasks, spec: RunSpec
    ) -> None:
        # Not read-only this time: a policy that writes where it may is to be caught too.
        given = Tasks(*(column.copy() for column in columns(tasks)))
        decisions = policy.decide(given, spec)
        for after, before in zip(columns(given), columns(tasks), strict=True):
            assert np.array_equal(after, before)
        assert len(decisions.gpu_fraction) == COUNT
