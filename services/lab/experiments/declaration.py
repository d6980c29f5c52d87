"""The declaration of an experiment: which runs, which tasks are judged, what is compared."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from services.lab.experiments.arrival_load import at_load
from shared.domain.schedulers import BUILT_IN
from shared.domain.spec import RunSpec, read_mapping
from shared.domain.validation_messages import explain
from shared.errors import ArenaError, SpecError

Figure = Literal[
    "total_time", "average_time", "makespan", "cost", "energy", "latency", "boxes", "speedup",
    "regret", "models", "workload", "graph", "sweep", "reference", "recovery", "turnaround",
    "breakdown",
]  # fmt: skip
Measure = Literal["turnaround", "time", "makespan", "energy", "cost"]
Load = Annotated[float, Field(gt=0, le=10)]

# Unless the experiment says otherwise: learners give the same results every time.
REPEATABLE: dict[str, Any] = {"pace": "max", "learning": {"sync": "lockstep"}}


class ExperimentError(ArenaError):
    """An experiment that is declared or run in a wrong way."""


class Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Variant(Declared):
    """A change of the spec; `value` is its position on the axis of a sweep."""

    label: str = ""
    value: float | None = None
    load: Load | None = Field(default=None, description="instead of the experiment's")
    spec: dict[str, Any] = Field(default_factory=dict)


class Reference(Declared):
    """Total times in seconds from another source, shown beside ours."""

    source: str
    total_time: dict[str, float] = Field(description="by our schedulers' names")
    notes: str = Field(default="", description="why ours may differ")


class Claim(Declared):
    """An expectation of one of three kinds; the report judges whether it holds."""

    measure: Measure = Field(default="time", description="of a ratio or an order")
    ratio: tuple[str, str] | None = Field(
        default=None, description="the measure of the first over that of the second"
    )
    at_least: float | None = Field(default=None, gt=0)
    at_most: float | None = Field(default=None, gt=0)
    recovered: str | None = Field(
        default=None, description="a scheduler that is near the Oracle again"
    )
    within_tasks: int | None = Field(default=None, ge=0)
    order: tuple[str, ...] | None = Field(
        default=None, min_length=2, description="by the measure, best first"
    )
    variants: tuple[str, ...] = Field(default=(), description="only of these; empty: of all")

    @model_validator(mode="after")
    def _one_kind(self) -> Claim:
        if [self.ratio, self.recovered, self.order].count(None) != 2:
            raise ValueError("set exactly one of ratio, recovered and order")
        bounds = 2 - [self.at_least, self.at_most].count(None)
        if bounds != (self.ratio is not None):
            raise ValueError("set at_least or at_most with a ratio, and only with a ratio")
        if (self.within_tasks is None) != (self.recovered is None):
            raise ValueError("set recovered and within_tasks together")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The schedulers it names."""
        return self.ratio or self.order or tuple(filter(None, (self.recovered,)))


class Experiment(Declared):
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    title: str
    question: str = Field(description="what it is to find out")
    explanation: str = Field(default="", description="background, printed in the report")
    tasks: int = Field(ge=1, description="of every run")
    judge_from: int = Field(default=0, ge=0, description="first task that is judged")
    measure: Measure = Field(default="turnaround", description="what schedulers are ranked by")
    load: Load | None = Field(
        default=None, description="share of the cluster's capacity that arrives: sets arrival_rate"
    )
    seeds: tuple[int, ...] = Field(default=(1, 2, 3, 4, 5), min_length=1)
    spec: dict[str, Any] = Field(default_factory=dict, description="of every run")
    variants: dict[str, Variant] = Field(default_factory=lambda: {"": Variant()})
    axis: str = Field(default="", description="name of the variants' values, for a sweep")
    plugins: tuple[str, ...] = Field(default=(), description="schedulers to add to the arena")
    baseline: str = Field(default="greedy", description="the scheduler of speed-up 1")
    compare: tuple[str, ...] = Field(
        default=(), description="schedulers to test against all others"
    )
    reference: Reference | None = None
    claims: tuple[Claim, ...] = Field(default=(), description="judged in the report")
    figures: tuple[Figure, ...] = Field(min_length=1)

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) != len(seeds):
            raise ValueError("duplicate seed")
        if not all(0 <= seed < 2**63 for seed in seeds):
            raise ValueError("a seed is at least 0 and below 2**63")
        return seeds

    @model_validator(mode="after")
    def _consistent(self) -> Experiment:
        if self.judge_from >= self.tasks:
            raise ValueError(f"judge_from ({self.judge_from}) leaves none of {self.tasks} tasks")
        for name in self.variants:
            self.run_spec(name, self.seeds[0])
        unknown = {name for claim in self.claims for name in claim.variants} - set(self.variants)
        if unknown:
            raise ValueError(f"claims: no variant {', '.join(sorted(unknown))}")
        self._check_names()
        return self

    def _check_names(self) -> None:
        """When every variant lists its schedulers, only those can be named elsewhere."""
        schedulers = [self.run_spec(each, self.seeds[0]).schedulers for each in self.variants]
        if not all(schedulers):
            return
        listed = {name for names in schedulers for name in names}
        if len(listed - set(BUILT_IN)) < len(self.plugins):
            raise ValueError(
                "plugins: a run has only the schedulers that its spec lists, and not every plug-in "
                "is listed: add its name to `schedulers`"
            )
        by_field = {
            "baseline": (self.baseline,),
            "compare": self.compare,
            "reference": tuple(self.reference.total_time) if self.reference else (),
            "claims": tuple(name for claim in self.claims for name in claim.names),
        }
        for field, names in by_field.items():
            absent = sorted(set(names) - listed)
            if absent:
                raise ValueError(f"{field}: {', '.join(absent)} not among the schedulers")

    def run_spec(self, variant: str, seed: int) -> RunSpec:
        """The spec of one run, checked."""
        data = merged(merged(REPEATABLE, self.spec), self.variants[variant].spec)
        name = "/".join(filter(None, (self.name, variant, str(seed))))
        load = self.variants[variant].load or self.load
        try:
            spec = RunSpec.parse({**data, "name": name, "tasks": self.tasks, "seed": seed})
            return spec if load is None else at_load(spec, load)
        except SpecError as error:
            raise ValueError(f"spec of {variant or 'every run'}: {error}") from None

    @property
    def judged(self) -> int:
        """How many tasks of each run are judged."""
        return self.tasks - self.judge_from

    def runs(self) -> Iterator[tuple[str, int]]:
        """All runs, seed by seed, so that an interrupted experiment has complete comparisons."""
        for seed in self.seeds:
            for variant in self.variants:
                yield variant, seed

    def label(self, variant: str) -> str:
        return self.variants[variant].label or variant


def parse(data: Any, source: str) -> Experiment:
    try:
        return Experiment.model_validate(data)
    except ValidationError as error:
        lines = [f"{source}: {line}" for line in explain(error, Experiment, "experiment")]
        raise ExperimentError("\n".join(lines)) from None


def built_in() -> dict[str, Experiment]:
    """The experiments that come with the arena, by name."""
    folder = resources.files("services.lab.experiments") / "built_in"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    declared = [parse(yaml.safe_load(file.read_text()), file.name) for file in files]
    return {experiment.name: experiment for experiment in declared}


def load(name: str) -> Experiment:
    """A built-in experiment, or one from a file."""
    if name.endswith((".yaml", ".yml", ".json")):
        return parse(read_mapping(Path(name)), name)
    known = built_in()
    if name not in known:
        raise ExperimentError(
            f"no experiment {name!r}; built in: {', '.join(known)}; or give a file.yaml"
        )
    return known[name]


def merged(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """`change` over `base`, mapping by mapping."""
    result = copy.deepcopy(base)
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result
