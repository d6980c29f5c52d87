"""What the environments take as a spec, and what both have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from shared.domain.learning.agent_observation import AgentObserver
from shared.domain.spec import RunSpec
from shared.errors import SpecError

# Tasks of an episode, unless it says otherwise.
EPISODE_TASKS = 1000
# Seeds that are drawn for episodes are below this.
SEEDS = 2**31

AnySpec = RunSpec | dict[str, Any] | str | Path | None


def read_spec(spec: AnySpec) -> RunSpec:
    """A RunSpec, its fields, or a YAML or JSON file of them."""
    if isinstance(spec, (str, Path)):
        spec = RunSpec.load(Path(spec))
    elif not isinstance(spec, RunSpec):
        spec = RunSpec.parse(spec)
    if spec.submitted:
        raise SpecError(["workload.source: the gym generates its tasks; leave `submitted` out"])
    if spec.real:
        raise SpecError(["execution.mode: the gym simulates its runs; leave `real` out"])
    return spec


def observation_space(observer: AgentObserver) -> Box:
    """All features are between 0, for never, and 1, for now."""
    return Box(0.0, 1.0, (observer.width,), np.float32)
