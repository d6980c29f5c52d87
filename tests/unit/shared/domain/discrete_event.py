"""An independent simulation of the virtual cluster, with SimPy and plain floats.

Each device is a process that serves its parts in task order. It shares no code with the product, so
the two agree only if both follow the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import simpy


@dataclass
class Job:
    """One task and the decision about it."""

    task_id: int
    size: float
    intensity: float
    memory: float
    arrival: float
    share: float
    gpu: int
    parents: list[int] = field(default_factory=list)


@dataclass
class Node:
    cpus: int = 1
    gpus: int = 4
    gpu_memory: float = 8000.0
    split: str = "serial"
    memory_policy: str = "cpu"


@dataclass
class Outcome:
    gpu_time: float
    cpu_time: float
    time: float
    energy: float
    failed: bool
    gpu_start: float | None = None  # None: no part ran on this device
    cpu_start: float | None = None
    finish: float = float("nan")
    wait: float = float("nan")
    turnaround: float = float("nan")


@dataclass
class Report:
    tasks: list[Outcome]
    makespan: float
    cpu_busy: list[float]
    gpu_busy: list[float]


def cost_of(job: Job, node: Node) -> Outcome:
    """The physics of one task, written again from its description."""
    on_cpu = (job.size / 1000.0) ** 1.5 / (job.intensity + 0.5)
    compute = on_cpu / (1.0 + 3.0 * job.intensity)
    transfer = job.memory / 16000.0
    share = job.share
    excess = share * job.memory - node.gpu_memory
    if excess > 0 and node.memory_policy == "fail":
        return Outcome(0.0, 0.0, 0.0, 0.0, True)
    if excess > 0 and node.memory_policy == "cpu":
        share = 0.0
    gpu = share * (compute + transfer)
    if excess > 0 and node.memory_policy == "page":
        gpu += excess / 16000.0
    cpu = (1.0 - share) * on_cpu
    time = gpu + cpu if node.split == "serial" else max(gpu, cpu)
    return Outcome(gpu, cpu, time, 50.0 * gpu + 30.0 * cpu, False)


def simulate(jobs: list[Job], node: Node) -> Report:
    env = simpy.Environment()
    outcomes = [cost_of(job, node) for job in jobs]
    ready = [env.event() for _ in jobs]
    gpu_done = [env.event() for _ in jobs]
    cpu_done = [env.event() for _ in jobs]
    finished = [env.event() for _ in jobs]
    cpu_busy, gpu_busy = [0.0] * node.cpus, [0.0] * node.gpus
    Events = Iterator[simpy.Event]

    def task(i: int) -> Events:
        yield env.timeout(jobs[i].arrival)
        for parent in jobs[i].parents:
            yield finished[parent]
        ready[i].succeed()
        if outcomes[i].gpu_time > 0:
            yield gpu_done[i]
        if outcomes[i].cpu_time > 0:
            yield cpu_done[i]
        outcomes[i].finish = env.now
        finished[i].succeed()

    def gpu_device(device: int) -> Events:
        for i, job in enumerate(jobs):
            if job.gpu != device or outcomes[i].gpu_time == 0:
                continue
            yield ready[i]
            outcomes[i].gpu_start = env.now
            yield env.timeout(outcomes[i].gpu_time)
            gpu_busy[device] += env.now - outcomes[i].gpu_start
            gpu_done[i].succeed()

    def cpu_device(device: int) -> Events:
        for i, job in enumerate(jobs):
            if job.task_id % node.cpus != device or outcomes[i].cpu_time == 0:
                continue
            yield ready[i]
            if node.split == "serial" and outcomes[i].gpu_time > 0:
                yield gpu_done[i]
            outcomes[i].cpu_start = env.now
            yield env.timeout(outcomes[i].cpu_time)
            cpu_busy[device] += env.now - outcomes[i].cpu_start
            cpu_done[i].succeed()

    for i in range(len(jobs)):
        env.process(task(i))
    for device in range(node.gpus):
        env.process(gpu_device(device))
    for device in range(node.cpus):
        env.process(cpu_device(device))
    env.run()

    for job, outcome in zip(jobs, outcomes, strict=True):
        outcome.turnaround = outcome.finish - job.arrival
        outcome.wait = outcome.turnaround - outcome.time
    return Report(outcomes, env.now, cpu_busy, gpu_busy)
