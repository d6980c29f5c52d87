"""Agents, tasks and results for the tests of the DQN, and execution times from the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from services.trainer.dueling_network import DuelingNetwork
from services.trainer.learner import Results
from services.trainer.learners.rl_agent import Dqn
from shared.domain.learning.features import agent_state
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Tasks
from shared.domain.workload import Cursor, generate


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


def q_values(dqn: Dqn, tasks: Tasks) -> Floats:
    with torch.no_grad():
        return np.asarray(dqn.policy(torch.from_numpy(agent_state(tasks))).numpy())


def parameters(network: DuelingNetwork | None) -> list[Any]:
    assert network is not None
    return [parameter.detach().clone() for parameter in network.parameters()]


def equal(one: list[Any], other: list[Any]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def results(tasks: Tasks, share: Any, device: Any, time: Any) -> Results:
    """Without waiting and energy."""
    nothing, time = np.zeros(len(tasks)), np.asarray(time, dtype=np.float64)
    return Results(
        tasks=tasks,
        share=np.asarray(share, dtype=np.float64),
        device=np.asarray(device, dtype=np.int64),
        cpu=np.full(len(tasks), -1),
        time=time,
        wait=nothing,
        turnaround=time,
        energy=nothing,
        cost=nothing,
        gpu_time=nothing,
        cpu_time=nothing,
        expected_time=nothing,
        explored=np.zeros(len(tasks), np.bool_),
        probability=np.ones(len(tasks)),
        failed=np.zeros(len(tasks), np.bool_),
    )


def pretrained(seed: int, **agent: Any) -> Dqn:
    tasks = tasks_of(seed + 1000, 1000)
    dqn = Dqn(RunSpec.parse({"seed": seed, "learning": {"agent": agent}}), tasks)
    dqn.pretrain(tasks)
    return dqn
