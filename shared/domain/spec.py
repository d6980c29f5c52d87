"""The RunSpec: everything that decides what a run computes, validated.

The same spec and seed give the same tasks and the same results (of learners: in lockstep). Every
constant of the physics, the cluster and the workload is a field here; nothing that changes a
result is configured anywhere else.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from shared.domain.hardware.certificate import Certificate
from shared.domain.hardware.cluster_spec import Cluster
from shared.domain.hardware.measured_times import Curve
from shared.domain.hardware.platform import Defaults, Platform, make_platform
from shared.domain.schedulers import check_scheduler_name
from shared.domain.spec_model import NonNegative, Positive, SpecModel, problem_at
from shared.domain.spec_parts.execution_spec import Execution
from shared.domain.spec_parts.learning_spec import Learning, Objective
from shared.domain.spec_parts.workload_spec import Workload, check_tasks_can_run
from shared.domain.tasks import LARGEST
from shared.domain.validation_messages import explain
from shared.errors import SpecError

# A longer run at pace max is about throughput: learners must not slow it down unless asked to.
MOST_LOCKSTEP_TASKS = 300_000


class Physics(SpecModel):
    """What a share of a task costs on a device."""

    split: Literal["serial", "overlapped"] = Field(
        default="serial", description="GPU part before CPU part, or both at once"
    )
    cost_model: Literal["cloud", "electricity"] = Field(
        default="cloud", description="which of the two stored costs is called `cost`"
    )
    memory_policy: Literal["cpu", "page", "fail"] = Field(
        default="cpu", description="what happens when the GPU's part does not fit its memory"
    )
    noise: Annotated[float, Field(ge=0, le=10)] | Literal["measured"] = Field(
        default=0.0,
        description="relative deviation of real from expected times, or as the table says",
    )
    measured: tuple[Curve, ...] = Field(
        default=(), description="measured task times; left out: the formula"
    )
    memory_mb_per_size: NonNegative = Field(
        default=0,
        description="memory of generated tasks with measured times; 1e-6 where sizes are bytes",
    )
    size_unit: Positive = Field(default=1000, description="size that takes 1 s at intensity 0.5")
    size_exponent: Positive = 1.5
    intensity_offset: Positive = 0.5
    speedup_slope: NonNegative = Field(default=3, description="speed-up is 1 + slope * intensity")
    bandwidth_mb_s: Positive = Field(default=16000, description="PCIe gen 3 x16")
    # Defaults for devices whose entry in `cluster.devices` does not say it, and for the short form.
    gpu_watts: NonNegative = 50
    cpu_watts: NonNegative = 30
    gpu_dollars_per_s: NonNegative = 0.0001
    cpu_dollars_per_s: NonNegative = 0.00002
    dollars_per_kwh: NonNegative = 0.15
    decision_s: NonNegative = Field(
        default=0, description="seconds from a task's arrival until its scheduler has decided"
    )
    slowdown_floor_s: Positive = Field(
        default=0.01, description="shorter tasks count as this long in their slowdown"
    )

    def defaults(self, gpu_memory_mb: float) -> dict[bool, Defaults]:
        """The defaults of accelerators (True) and of CPUs (False)."""
        gpu = Defaults(
            gpu_memory_mb,
            self.bandwidth_mb_s,
            self.speedup_slope,
            self.gpu_watts,
            self.gpu_dollars_per_s,
        )
        cpu = Defaults(math.inf, math.inf, 0.0, self.cpu_watts, self.cpu_dollars_per_s)
        return {True: gpu, False: cpu}


class Oracle(SpecModel):
    step: float = Field(default=0.05, gt=0, le=0.5, description="grid of shares that are tried")


class RunSpec(SpecModel):
    """One simulation."""

    name: str = Field(default="", max_length=100, description="a label")
    seed: int = Field(default=42, ge=0, lt=2**63)
    tasks: int | None = Field(
        default=None, ge=1, le=10**12, description="how many tasks to generate; none: endless"
    )
    pace: float | Literal["max"] = Field(
        default=20.0, description="tasks per second of wall time, or `max`"
    )
    schedulers: tuple[str, ...] = Field(
        default=(), description="names; empty: every scheduler that is deployed"
    )
    cluster: Cluster = Cluster()
    execution: Execution = Execution()
    physics: Physics = Physics()
    oracle: Oracle = Oracle()
    learning: Learning = Learning()
    objective: Objective = Objective()
    workload: Workload = Field(default_factory=lambda: Workload.model_validate({}))
    certificate: Certificate | None = Field(
        default=None, description="how far simulations of the platform were from real runs"
    )
    _platform: tuple[Cluster, Physics, Platform] | None = PrivateAttr(default=None)
    _without_noise: tuple[Physics, RunSpec] | None = PrivateAttr(default=None)

    @property
    def platform(self) -> Platform:
        """The devices, and where task times come from; made once."""
        # Past pydantic's lookup of private attributes, which takes longer than what is done here.
        private = self.__pydantic_private__
        cached = None if private is None else private["_platform"]
        # A copy of this spec with another cluster or physics has this one's platform with it.
        if cached is None or cached[0] is not self.cluster or cached[1] is not self.physics:
            defaults = self.physics.defaults(self.cluster.gpu_memory_mb)
            platform = make_platform(self.cluster, defaults, self.physics.measured)
            cached = self._platform = (self.cluster, self.physics, platform)
        return cached[2]

    def __eq__(self, other: object) -> bool:
        """Compares the fields; what was computed from them does not count."""
        return isinstance(other, RunSpec) and self.__dict__ == other.__dict__

    __hash__ = SpecModel.__hash__

    @property
    def without_noise(self) -> RunSpec:
        """The same run with every task as long as expected; made once."""
        if self.physics.noise == 0:
            return self
        if self._without_noise is None or self._without_noise[0] is not self.physics:
            exact = self.physics.model_copy(update={"noise": 0.0})
            copy = self.model_copy(update={"physics": exact})
            self._without_noise = (self.physics, copy)
        return self._without_noise[1]

    @model_validator(mode="after")
    def _curves_are_of_devices(self) -> RunSpec:
        types = {device.type for device in self.cluster.devices} or {"cpu", "gpu"}
        known = set()
        for curve in self.physics.measured:
            if (curve.kind, curve.type) in known:
                raise ValueError(
                    f"physics.measured: {curve.kind} on {curve.type} is given twice; use one curve"
                )
            known.add((curve.kind, curve.type))
            if curve.type not in types:
                raise ValueError(
                    f"physics.measured: {curve.kind} was measured on {curve.type}, which is no "
                    f"device type of the cluster; allowed: {', '.join(sorted(types))}"
                )
            largest = max(1.0, self.physics.memory_mb_per_size) * curve.sizes[-1]
            if largest > LARGEST:
                raise ValueError(
                    f"physics.measured: size {curve.sizes[-1]:g} of {curve.kind} is too large: "
                    f"sizes and MB of tasks are at most {LARGEST:g}; use another unit of size"
                )
        return self

    @model_validator(mode="after")
    def _generated_tasks_can_run(self) -> RunSpec:
        if self.physics.measured or self.workload.kinds or self.workload.widths:
            check_tasks_can_run(self.workload, self.platform)
        return self

    @model_validator(mode="after")
    def _real_runs_can_be_executed(self) -> RunSpec:
        if not self.real:
            return self
        cluster = self.cluster
        missing = [device.type for device in cluster.devices if device.real is None]
        if missing or not cluster.devices:
            raise problem_at(
                "a real run needs `cluster.devices`, each with a `real` block that says what it is "
                f"on the executor's machine; without one: {', '.join(missing) or 'all'}",
                "cluster",
                "devices",
            )
        if sum(cluster.node_counts.values()) > 1:
            raise problem_at("a real run is on one machine: one node", "cluster", "nodes")
        if self.learning.sync == "lockstep":
            raise problem_at(
                "learners of a real run learn by wall clock: leave it out", "learning", "sync"
            )
        if self.workload.widths or any(kind.widths for kind in self.workload.kinds):
            raise problem_at("tasks of real runs take one device each", "workload", "widths")
        return self

    @property
    def real(self) -> bool:
        """Whether an executor runs the tasks, instead of the simulator."""
        return self.execution.mode == "real"

    @property
    def submitted(self) -> bool:
        return self.workload.source == "submitted"

    @property
    def lockstep(self) -> bool:
        """Whether learners learn in step with the stream; see `shared.domain.learning.lockstep`."""
        if self.real:
            return False
        if self.learning.sync != "auto":
            return self.learning.sync == "lockstep"
        counted = self.tasks is not None and self.tasks <= MOST_LOCKSTEP_TASKS
        return self.pace == "max" and (counted or self.submitted)

    @model_validator(mode="after")
    def _submitted_tasks_end_by_themselves(self) -> RunSpec:
        if self.submitted and self.tasks is not None:
            raise ValueError("tasks that are submitted cannot be counted before: leave `tasks` out")
        return self

    @field_validator("pace", mode="before")
    @classmethod
    def _pace(cls, pace: Any) -> Any:
        if pace == "max":
            return pace
        try:
            rate = 0.0 if isinstance(pace, bool) else float(pace)
        except (TypeError, ValueError):
            rate = 0.0
        if not 0 < rate < 1e9:
            raise ValueError("must be a number of tasks per second above 0, or max")
        return rate

    @field_validator("schedulers")
    @classmethod
    def _names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) != len(names):
            raise ValueError("a scheduler is named twice")
        for name in names:
            check_scheduler_name(name)
        return names

    @classmethod
    def parse(cls, data: Any) -> RunSpec:
        """Validate plain data; a SpecError names every field that is wrong."""
        if data is None:
            data = {}
        if not isinstance(data, dict):
            raise SpecError([f"a run spec is a mapping of fields, not {type(data).__name__}"])
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise SpecError(explain(error, cls, "spec")) from None

    @classmethod
    def load(cls, path: Path) -> RunSpec:
        """Read a spec from a YAML or JSON file."""
        return cls.parse(read_mapping(path))


def read_mapping(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError([f"{path}: cannot be read: {error}"]) from None
    try:
        return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        kind = "JSON" if path.suffix == ".json" else "YAML"
        raise SpecError([f"{path}: not valid {kind}: {error}"]) from None
