"""The workloads of a validation, drawn from a seed: all kinds of tasks at several loads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from services.lab.experiments.arrival_load import at_load
from services.lab.experiments.declaration import merged
from shared.domain.spec import RunSpec
from shared.platforms.platform_file import PlatformFile

# Offered load: half of what all devices can do, most of it, and more than that.
LOADS = (0.5, 0.8, 1.1)
# Only rules: a learner would learn other things in the simulation than in the real run.
SCHEDULERS = ("eft", "least_loaded", "round_robin", "random", "gpu_only")


@dataclass(frozen=True, slots=True)
class Workload:
    number: int
    load: float
    simulated: RunSpec
    real: RunSpec


def workloads(
    platform: PlatformFile, count: int, tasks: int, seed: int, schedulers: tuple[str, ...]
) -> Iterator[Workload]:
    """Each scheduler runs all tasks of a real run in one turn."""
    draw = random.Random(seed)
    for number in range(count):
        load = draw.choice(LOADS)
        fields: dict[str, Any] = {
            "name": f"validate {platform.name} {number + 1}",
            "seed": draw.randrange(2**31),
            "tasks": tasks,
            "pace": "max",
            "schedulers": list(schedulers),
        }
        simulated = at_load(RunSpec.parse(merged(platform.spec_fields(), fields)), load)
        real = merged(
            simulated.model_dump(mode="json"),
            {"execution": {"mode": "real", "stretch_tasks": tasks}},
        )
        yield Workload(number, load, simulated, RunSpec.parse(real))
