"""The workload of a RunSpec: when tasks arrive, and what distributions they are drawn from."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from shared.domain.hardware.cluster_spec import MOST_DEVICES
from shared.domain.hardware.measured_times import MeasuredTimes
from shared.domain.hardware.platform import Platform
from shared.domain.spec_model import NonNegative, Positive, Share, SpecModel
from shared.domain.spec_parts.workflow_shapes import FEWEST_TASKS, Shape
from shared.domain.spec_parts.workload_presets import ARRIVAL_RATES, DEFAULT_PRESET, PRESETS
from shared.domain.tasks import DEPENDENCY_WINDOW, FARTHEST_PARENT, LARGEST

# A task that may have children this many tasks later is in every message of results until then.
MOST_REMEMBERED = 10_000

# Arrivals in each hour of a day, from midnight on: most of them in working hours.
WORKING_DAY = (2, 2, 1, 1, 1, 1, 2, 3, 5, 7, 8, 8, 7, 8, 8, 8, 7, 6, 5, 4, 4, 3, 3, 2)


class Poisson(SpecModel):
    """Independent arrivals at a constant rate."""

    kind: Literal["poisson"] = "poisson"


class Bursty(SpecModel):
    """On and off: a pause, then a burst of tasks. The mean rate is `arrival_rate`."""

    kind: Literal["bursty"]
    burst_tasks: int = Field(default=50, ge=2, le=1_000_000, description="tasks of a burst")
    factor: float = Field(
        default=10, gt=1, le=LARGEST, description="rate within a burst over the mean rate"
    )


class Diurnal(SpecModel):
    """A rate that changes in the course of a day. Its mean is `arrival_rate`."""

    kind: Literal["diurnal"]
    period_s: Positive = Field(default=86_400, le=LARGEST, description="length of the day")
    profile: tuple[Annotated[float, Field(ge=0, le=LARGEST)], ...] = Field(
        default=WORKING_DAY,
        min_length=1,
        max_length=10_000,
        description="weights of equal parts of the day, such as 24 hours",
    )

    @field_validator("profile")
    @classmethod
    def _somebody_arrives(cls, profile: tuple[float, ...]) -> tuple[float, ...]:
        if not any(profile):
            raise ValueError("at least one weight must be above 0")
        return profile


class LogNormal(SpecModel):
    kind: Literal["lognormal"]
    median: Positive
    sigma: NonNegative
    high: Positive = Field(default=LARGEST, le=LARGEST, description="values above are cut to this")


class Pareto(SpecModel):
    kind: Literal["pareto"]
    low: Positive
    alpha: Positive
    high: Positive = Field(default=LARGEST, le=LARGEST, description="values above are cut to this")


class Uniform(SpecModel):
    kind: Literal["uniform"]
    low: NonNegative
    high: NonNegative = Field(le=LARGEST)

    @model_validator(mode="after")
    def _ordered(self) -> Uniform:
        if self.high < self.low:
            raise ValueError(f"high ({self.high}) must not be below low ({self.low})")
        return self


def _sizes_above_zero(size: LogNormal | Pareto | Uniform) -> LogNormal | Pareto | Uniform:
    if isinstance(size, Uniform) and size.low <= 0:
        raise ValueError("sizes must be above 0: set low > 0")
    return size


Size = Annotated[
    LogNormal | Pareto | Uniform, Field(discriminator="kind"), AfterValidator(_sizes_above_zero)
]


class Bimodal(SpecModel):
    """CPU-bound and GPU-bound tasks: two bells, cut to 0..1."""

    kind: Literal["bimodal"]
    low: Share = 0.2
    high: Share = 0.8
    spread: NonNegative = 0.08
    high_share: Share = Field(default=0.5, description="how many tasks come from the upper bell")


class Memory(SpecModel):
    """MB of a task, loosely tied to its size: value * (size / size_reference) ** size_exponent."""

    values: Annotated[LogNormal | Uniform, Field(discriminator="kind")]
    size_reference: Positive = 200
    size_exponent: NonNegative = 0


class Mix(SpecModel):
    """The distributions that one preset names."""

    size: Size
    intensity: Annotated[Bimodal | Uniform, Field(discriminator="kind")]
    memory: Memory

    @field_validator("intensity")
    @classmethod
    def _intensity_is_a_share(cls, intensity: Bimodal | Uniform) -> Bimodal | Uniform:
        if isinstance(intensity, Uniform) and intensity.high > 1:
            raise ValueError("intensity lies in 0..1: set high <= 1")
        return intensity


class Dependencies(SpecModel):
    """A random DAG: some tasks wait for a few of the tasks just before them. With another shape
    tasks come as workflows of that shape, all tasks of a workflow at the same moment."""

    probability: Share = 0
    max_parents: int = Field(default=3, ge=1, le=16)
    window: int = Field(
        default=64, ge=1, le=FARTHEST_PARENT, description="how far back a parent may lie"
    )
    shape: Literal["random"] | Shape = "random"
    workflow_tasks: int = Field(
        default=32, ge=FEWEST_TASKS, le=MOST_REMEMBERED, description="tasks of each workflow"
    )

    @property
    def workflow(self) -> int | None:
        """Tasks of each workflow; None: there are no workflows."""
        return None if self.shape == "random" else self.workflow_tasks


class Drift(SpecModel):
    """From generated task `after` on, the mix is that of `preset`."""

    after: int = Field(ge=0)
    preset: str

    @field_validator("preset")
    @classmethod
    def _known(cls, preset: str) -> str:
        return _known_preset(preset)


class WidthShare(SpecModel):
    width: int = Field(ge=1, le=MOST_DEVICES, description="devices of one type at once")
    weight: Positive = Field(default=1, le=LARGEST)


def _widths_once(shares: tuple[WidthShare, ...]) -> tuple[WidthShare, ...]:
    _check_once([share.width for share in shares])
    return shares


Widths = Annotated[tuple[WidthShare, ...], AfterValidator(_widths_once)]


class KindShare(SpecModel):
    kind: str = Field(description="one of the measured table")
    weight: Positive = Field(default=1, le=LARGEST)
    size: Size | None = Field(
        default=None, description="left out: log-uniform between the measured sizes"
    )
    widths: Widths = Field(default=(), description="left out: those of the workload")
    memory_mb_per_size: NonNegative | None = Field(
        default=None, description="left out: that of the physics"
    )


class Workload(SpecModel):
    """Arrivals of tasks from a mix. Fields of `mix` replace those of the preset.

    Where task times are measured, tasks are drawn from the kinds and sizes of the table instead of
    the mix. With the source `submitted` nothing is generated: tasks come from outside, such as from
    a trace, and generated ones are only what learners are pre-trained on.
    """

    source: Literal["generated", "submitted"] = Field(
        default="generated", description="where tasks come from: the generator, or a client"
    )
    preset: str = DEFAULT_PRESET
    arrival_rate: Positive = Field(
        default=ARRIVAL_RATES[DEFAULT_PRESET],
        description="tasks per second of simulated time; left out: that of the preset",
    )
    arrivals: Annotated[Poisson | Bursty | Diurnal, Field(discriminator="kind")] = Poisson()
    mix: Mix
    kinds: tuple[KindShare, ...] = Field(
        default=(), description="of a measured table; left out: all of it equally often"
    )
    divisible: bool = Field(
        default=True, description="whether tasks may be split between an accelerator and a CPU"
    )
    widths: Widths = Field(default=(), description="left out: one device each")
    dependencies: Dependencies = Dependencies()
    drift: tuple[Drift, ...] = ()

    @field_validator("preset")
    @classmethod
    def _known(cls, preset: str) -> str:
        return _known_preset(preset)

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        name = data.get("preset", DEFAULT_PRESET)
        # A wrong name is the field's own validator's to report: it says which ones exist.
        if not isinstance(name, str) or name not in PRESETS:
            name = DEFAULT_PRESET
        mix = {} if data.get("mix") is None else data["mix"]
        mix = {**PRESETS[name], **mix} if isinstance(mix, dict) else mix
        return {"arrival_rate": ARRIVAL_RATES[name], **data, "mix": mix}

    @field_validator("drift")
    @classmethod
    def _in_order(cls, drift: tuple[Drift, ...]) -> tuple[Drift, ...]:
        starts = [step.after for step in drift]
        if starts != sorted(set(starts)):
            raise ValueError("steps must be in rising order of `after`")
        return drift

    @field_validator("kinds")
    @classmethod
    def _kinds_once(cls, shares: tuple[KindShare, ...]) -> tuple[KindShare, ...]:
        _check_once([share.kind for share in shares])
        return shares

    @model_validator(mode="after")
    def _generated_tasks_are_remembered(self) -> Workload:
        if self.source == "generated" and self.dependencies.window > MOST_REMEMBERED:
            raise ValueError(
                f"dependencies.window of generated tasks is at most {MOST_REMEMBERED}; "
                "only submitted tasks can say which of them have children farther away"
            )
        return self

    @property
    def reach(self) -> int:
        """How many tasks back a parent may be."""
        rule = self.dependencies
        workflow = rule.workflow or 0
        return max(DEPENDENCY_WINDOW, rule.window, workflow)


def check_tasks_can_run(workload: Workload, platform: Platform) -> None:
    """Raises ValueError if some generated task would find no device that can run it."""
    if platform.measured is not None:
        shares = measured_kinds(workload, platform.measured)
    elif workload.kinds:
        raise ValueError("workload.kinds: only where task times are measured (physics.measured)")
    else:
        shares = (KindShare(kind=""),)
    for share in shares:
        for width in [each.width for each in share.widths or workload.widths]:
            if width > (widest := platform.widest(share.kind)):
                of_kind = f" that can run {share.kind}" if share.kind else ""
                raise ValueError(
                    f"workload.widths: no device type{of_kind} has {width} devices; "
                    f"allowed: 1 to {widest}"
                )


def measured_kinds(workload: Workload, measured: MeasuredTimes) -> tuple[KindShare, ...]:
    """The kinds that tasks are generated of: those of the workload, else all of the table."""
    if workload.drift:
        raise ValueError(
            "workload.drift: presets do not apply where task times are measured; leave it out"
        )
    for share in workload.kinds:
        if share.kind not in measured.kinds:
            raise ValueError(
                f"workload.kinds: unknown kind {share.kind!r}; allowed: {', '.join(measured.kinds)}"
            )
    return workload.kinds or tuple(KindShare(kind=kind) for kind in measured.kinds)


def _check_once(names: list[Any]) -> None:
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ValueError(f"{twice[0]} is listed twice; add the weights up")


def _known_preset(preset: str) -> str:
    if preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}; allowed: {', '.join(PRESETS)}")
    return preset
