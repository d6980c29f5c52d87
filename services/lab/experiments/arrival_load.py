"""The arrival rate at which the tasks of a run offer a given load to its cluster.

The load is that of `shared/domain/bounds/offered_load.py`: 1 is what all devices together could do
if tasks were cut freely among them. It is exact for the run's own tasks, whatever its seed, if they
arrive at a constant rate; bursts and the time of day have it as their mean.
"""

from __future__ import annotations

from functools import lru_cache

from shared.domain.bounds.offered_load import SAMPLE, OfferedLoad
from shared.domain.spec import RunSpec
from shared.domain.spec_parts.workload_spec import Poisson
from shared.domain.workload import Cursor, generate
from shared.errors import SpecError


def at_load(spec: RunSpec, load: float) -> RunSpec:
    """The spec with the arrival rate that gives this load."""
    steady = spec.workload.model_copy(update={"arrival_rate": 1.0, "arrivals": Poisson()})
    unnamed = spec.model_copy(update={"name": "", "workload": steady})
    rate = load / _offered_load(unnamed.model_dump_json())
    workload = spec.workload.model_copy(update={"arrival_rate": rate})
    return spec.model_copy(update={"workload": workload})


@lru_cache(maxsize=64)
def _offered_load(spec_json: str) -> float:
    """The load of the run's tasks; if there are very many, of the first of them."""
    spec = RunSpec.model_validate_json(spec_json)
    tasks, _ = generate(spec, Cursor(), min(spec.tasks or SAMPLE, SAMPLE))
    offered = OfferedLoad(spec)
    offered.add(tasks)
    load = offered.load()
    if load is None:
        raise SpecError(["load: one task alone has no arrival rate; use more tasks"])
    return load.cluster
