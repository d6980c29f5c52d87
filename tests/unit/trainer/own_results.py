"""Results of a cluster policy with its model, for tests of its learner."""

from __future__ import annotations

from typing import Any

import numpy as np

from services.scheduler.learned_policy import LearnedClusterPolicy
from services.scheduler.policy import visible_spec
from services.trainer.learner import Results
from shared.domain.cluster import virtual_cluster as virtual
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.cluster.observation import Observation
from shared.domain.cluster.virtual_cluster import Cluster
from shared.domain.physics import price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.domain.workload import Cursor, generate


def pretraining_tasks(spec: RunSpec, count: int = 600) -> Tasks:
    return generate(spec.model_copy(update={"seed": spec.seed + 1}), Cursor(), count)[0]


def results_of(
    policy: LearnedClusterPolicy, body: bytes | None, spec: RunSpec, tasks: Tasks
) -> Results:
    """The results of the tasks on an idle cluster; without a model, as before the first one."""
    visible, cluster = visible_spec(spec, policy), Cluster.idle(len(spec.platform))
    prepared: Any = None
    if body is not None:
        prepared = policy.prepare_with(policy.load_model(body), tasks, visible)
    if isinstance(prepared, Decisions):
        return simulated(tasks, prepared, spec)
    view = ClusterView(cluster, Observation(cluster.copy()), tasks, spec, prepared=prepared)
    decisions = policy.decide(tasks, view, visible)
    return simulated(tasks, decisions, spec)


def simulated(tasks: Tasks, decisions: Decisions, spec: RunSpec) -> Results:
    """The results of decisions on an idle cluster, as the simulator computes them."""
    platform, share, count = spec.platform, decisions.gpu_fraction, len(tasks)
    device, cpu = platform.complete(tasks.task_id, share, decisions.device, decisions.cpu)
    priced = price(tasks, share, spec, device, cpu)
    idle, split = Cluster.idle(len(platform)), spec.physics.split
    schedule = virtual.run(idle, tasks, device, cpu, priced, split, platform)
    turnaround = schedule.finish - tasks.arrival_time
    expected, explored = decisions.expected_time, decisions.explored
    probability = decisions.probability
    return Results(
        tasks=tasks,
        share=share,
        device=device,
        cpu=cpu,
        time=priced.time,
        wait=turnaround - priced.time,
        turnaround=turnaround,
        energy=priced.energy,
        cost=priced.cost,
        gpu_time=priced.gpu_time,
        cpu_time=priced.cpu_time,
        expected_time=priced.time if expected is None else expected,
        explored=np.zeros(count, np.bool_) if explored is None else explored,
        probability=np.ones(count) if probability is None else probability,
        failed=priced.failed,
    )
