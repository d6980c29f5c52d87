"""A run without an arena: the same tasks, decisions and results, bit for bit.

The parts are those of the workers, the simulator and the trainer, which are plain functions. It is
for runs that end before a learner's second model would decide a task: at most
`2 * learning.lockstep_tasks` tasks, in lockstep.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from services.scheduler.cluster_worker import ClusterCopy, place
from services.scheduler.learned_policy import LearnedClusterPolicy
from services.scheduler.policy import AnyPolicy, Policy, check, load, visible_spec
from services.scheduler.worker import decide, with_decisions
from services.simulator.simulation import Simulation
from services.trainer.learner_registry import LearnerRegistry
from services.trainer.pretraining import pretraining_tasks
from shared.domain.learning.lockstep import deciding_version
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.domain.workload import Cursor, generate
from shared.errors import SpecError
from shared.messages.batches import Batch, task_rows
from shared.messages.envelope import Envelope
from shared.messages.standing import Standing


def run_offline(spec: RunSpec, name: str) -> Standing:
    """The totals of one scheduler after the run."""
    if spec.tasks is None or deciding_version(spec.tasks - 1, spec) > 1 or not spec.lockstep:
        raise SpecError(
            [f"not a run of at most {2 * spec.learning.lockstep_tasks} tasks in lockstep"]
        )
    tasks, _ = generate(spec, Cursor(), spec.tasks)
    policy = _policy(name)
    envelope = Envelope("tasks", "offline", batch=0, published_at=0.0)
    batch = Batch(envelope, task_rows(tasks))
    decided = _decided(batch, tasks, policy, spec)
    _, after = Simulation.new(spec).advance(decided.rows)
    return after.standing


def _decided(batch: Batch, tasks: Tasks, policy: AnyPolicy, spec: RunSpec) -> Batch:
    if isinstance(policy, Policy):
        return decide(batch, policy, spec)
    visible, version = visible_spec(spec, policy), 0
    prepared: Any
    model = _model(policy, spec) if isinstance(policy, LearnedClusterPolicy) else None
    if model is not None and isinstance(policy, LearnedClusterPolicy):
        prepared, version = policy.prepare_with(model, tasks, visible), 1
    else:
        prepared = policy.prepare(tasks, visible)
    if isinstance(prepared, Decisions):
        checked = check(replace(prepared, model_version=version), tasks, spec, policy.name)
        return with_decisions(batch, tasks, checked, policy.name, spec)
    return place(batch, policy, ClusterCopy.new(spec), spec, prepared, version)[0]


def _model(policy: LearnedClusterPolicy, spec: RunSpec) -> Any:
    """The pre-trained model, as the trainer makes it before the first task."""
    if not spec.learning.pretrain_tasks:
        return None
    learner = _learners()[policy.learner](spec)
    # As in the trainer: another number of threads gives other last bits.
    with threadpool_limits(1):
        update = learner.pretrain(pretraining_tasks(spec))
    return None if update is None else policy.load_model(update.body)


@cache
def _policy(name: str) -> AnyPolicy:
    return load(name)


@cache
def _learners() -> dict[str, Any]:
    return dict(LearnerRegistry("").learners)
