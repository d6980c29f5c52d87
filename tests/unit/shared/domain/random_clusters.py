"""Random clusters, tasks and decisions for hypothesis, in terms of the independent simulation, and
the same for the product."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from tests.unit.shared.domain.discrete_event import Entry, Job, Kind, Machines

SPLITS = ("serial", "overlapped")
MEMORY_POLICIES = ("cpu", "page", "fail")
TASK_KINDS = ("gemm", "lu", "sort", "unknown")

# About a third of the memories does not fit the smaller accelerators.
MEMORY = st.floats(0, 25_000)
# Parts of length 1e-300 or shares that are 1 but for the last bit prove nothing about rules.
SHARES = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(1e-6, 1 - 1e-6))


def _accelerator(name: str) -> st.SearchStrategy[Kind]:
    return st.builds(
        Kind,
        name=st.just(name),
        accelerator=st.just(True),
        speed=st.floats(0.5, 4),
        slope=st.floats(0, 20),
        memory=st.floats(2000, 20_000),
        bandwidth=st.floats(4000, 64_000),
        watts=st.floats(0, 400),
        dollars=st.floats(0, 0.001),
    )


def _cpu(name: str) -> st.SearchStrategy[Kind]:
    return st.builds(
        Kind,
        name=st.just(name),
        accelerator=st.just(False),
        speed=st.floats(0.5, 4),
        watts=st.floats(0, 400),
        dollars=st.floats(0, 0.001),
    )


@st.composite
def machines(draw: st.DrawFn, policies: tuple[str, ...] = MEMORY_POLICIES) -> Machines:
    """Up to three kinds of nodes, each with some of five device types; some have no CPU, some no
    accelerator."""
    kinds = [
        *(draw(_accelerator(name)) for name in ("gpu", "tpu", "v100")),
        *(draw(_cpu(name)) for name in ("cpu", "cpu_big")),
    ]
    names = ["n", "m", "k"][: draw(st.integers(1, 3))]
    entries = [
        Entry(kind, draw(st.integers(1, 3)), node)
        for node in names
        for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3, unique_by=id))
    ]
    used = {entry.kind.name for entry in entries}
    table = {}
    if draw(st.booleans()):
        keys = [(kind, name) for kind in TASK_KINDS[:-1] for name in sorted(used)]
        measured = draw(st.lists(st.sampled_from(keys), min_size=1, unique=True))
        table = {key: draw(st.floats(1e-4, 1e-2)) for key in measured}
    return Machines(
        entries,
        {name: draw(st.integers(1, 2)) for name in names},
        network_mb_s=draw(st.floats(1000, 100_000)),
        latency=draw(st.sampled_from([0.0, 0.01])),
        split=draw(st.sampled_from(SPLITS)),
        memory_policy=draw(st.sampled_from(policies)),
        table=table,
    )


@st.composite
def jobs(
    draw: st.DrawFn, machines: Machines, *, plain: bool = False, max_size: int = 40
) -> list[Job]:
    """Tasks with decisions. Service takes about as long as the gaps between arrivals. `plain`: all
    of width 1 and without parents."""
    accelerators = [n for n, (kind, _) in enumerate(machines.devices) if kind.accelerator]
    cpus = [n for n, (kind, _) in enumerate(machines.devices) if not kind.accelerator]
    nodes = sum(machines.nodes.values())
    found: list[Job] = []
    clock = 0.0
    for i in range(draw(st.integers(1, max_size))):
        clock += draw(st.one_of(st.just(0.0), st.floats(0.001, 3)))
        lags = [] if plain else draw(st.lists(st.integers(1, 30), max_size=3))
        found.append(
            Job(
                i,
                size=draw(st.floats(10, 3000)),
                intensity=draw(st.floats(0, 1)),
                memory=draw(MEMORY),
                arrival=clock,
                share=draw(SHARES),
                device=draw(st.sampled_from([None, *accelerators])),
                cpu=draw(st.sampled_from([None, *cpus])),
                parents=sorted({i - lag for lag in lags if lag <= i}),
                kind=draw(st.sampled_from(TASK_KINDS)) if machines.table else "",
                divisible=draw(st.sampled_from([True, True, False])),
                width=1 if plain else draw(st.sampled_from([1, 1, 1, 2, 4])),
                home=draw(st.sampled_from([None, *range(nodes)])),
            )
        )
    return found


def spec_of(machines: Machines) -> RunSpec:
    described: dict[str, dict[str, Any]] = {}
    for kind in machines.kinds:
        fields = {"accelerator": kind.accelerator, "speed": kind.speed, "watts": kind.watts}
        if kind.accelerator:
            fields |= {"memory_mb": kind.memory, "bandwidth_mb_s": kind.bandwidth}
        fields |= {"speedup_slope": kind.slope, "dollars_per_s": kind.dollars}
        described[kind.name] = fields
    devices = [
        {
            "type": each.kind.name,
            "count": each.count,
            "node": each.node,
            **described[each.kind.name],
        }
        for each in machines.entries
    ]
    curves = [
        {"kind": kind, "type": name, "sizes": [100], "seconds": [100 * per_size]}
        for (kind, name), per_size in machines.table.items()
    ]
    network = {"bandwidth_mb_s": machines.network_mb_s, "latency_s": machines.latency}
    nodes = [{"name": name, "count": count} for name, count in machines.nodes.items()]
    return RunSpec.parse(
        {
            "cluster": {"devices": devices, "nodes": nodes, "network": network},
            "physics": {
                "split": machines.split,
                "memory_policy": machines.memory_policy,
                "measured": curves,
            },
        }
    )


def tasks_of(jobs: list[Job]) -> Tasks:
    last_child = {job.task_id: job.task_id for job in jobs}
    for job in jobs:
        last_child |= dict.fromkeys(job.parents, job.task_id)
    return Tasks(
        task_id=np.array([job.task_id for job in jobs]),
        size=np.array([job.size for job in jobs]),
        compute_intensity=np.array([job.intensity for job in jobs]),
        memory_required=np.array([job.memory for job in jobs]),
        arrival_time=np.array([job.arrival for job in jobs]),
        parents=[job.parents for job in jobs] if any(job.parents for job in jobs) else (),
        kind=[job.kind for job in jobs] if any(job.kind for job in jobs) else (),
        divisible=np.array([job.divisible for job in jobs]),
        width=np.array([job.width for job in jobs]),
        home=np.array([-1 if job.home is None else job.home for job in jobs]),
        last_child=np.array([last_child[job.task_id] for job in jobs]),
    )


def decisions_of(jobs: list[Job]) -> Decisions:
    return Decisions(
        gpu_fraction=np.array([job.share for job in jobs]),
        device=np.array([-1 if job.device is None else job.device for job in jobs]),
        cpu=np.array([-1 if job.cpu is None else job.cpu for job in jobs]),
    )
