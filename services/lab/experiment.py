"""An experiment: which runs to make, which tasks to judge, what to compare. A small YAML file."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from shared.errors import ArenaError, SpecError
from shared.explain import explain
from shared.spec import RunSpec, read_mapping

Figure = Literal[
    "total_time", "average_time", "makespan", "cost", "energy", "latency", "boxes", "speedup",
    "regret", "models", "workload", "graph", "sweep", "reference", "recovery",
]  # fmt: skip


class ExperimentError(ArenaError):
    """A declaration that makes no sense; the text says what to set."""


class Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Variant(Declared):
    """A change of the spec; `value` is its place on the axis of a sweep."""

    label: str = ""
    value: float | None = None
    spec: dict[str, Any] = Field(default_factory=dict)


class Reference(Declared):
    """Figures that somebody else reported, shown beside ours. Total time in seconds."""

    source: str
    total_time: dict[str, float] = Field(description="by our schedulers' names")
    notes: str = Field(default="", description="why ours may differ")


class Claim(Declared):
    """Something said of the outcomes beforehand, of one of three kinds. The report says whether it
    holds."""

    ratio: tuple[str, str] | None = Field(
        default=None, description="total time of the first over that of the second"
    )
    at_least: float | None = Field(default=None, gt=0)
    at_most: float | None = Field(default=None, gt=0)
    recovered: str | None = Field(default=None, description="is back near the Oracle")
    within_tasks: int | None = Field(default=None, ge=0)
    order: tuple[str, ...] | None = Field(
        default=None, min_length=2, description="by total time, fastest first"
    )

    @model_validator(mode="after")
    def _is_one(self) -> Claim:
        if [self.ratio, self.recovered, self.order].count(None) != 2:
            raise ValueError("say one of ratio, recovered and order")
        bounds = 2 - [self.at_least, self.at_most].count(None)
        if bounds != (self.ratio is not None):
            raise ValueError("a ratio has either at_least or at_most, and nothing else has")
        if (self.within_tasks is None) != (self.recovered is None):
            raise ValueError("recovered goes with within_tasks")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The schedulers it is about."""
        return self.ratio or self.order or tuple(filter(None, (self.recovered,)))


class Experiment(Declared):
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    title: str
    question: str = Field(description="what it is meant to find out, in a sentence or two")
    explanation: str = Field(default="", description="background that the report prints as it is")
    tasks: int = Field(ge=1, description="of every run")
    judge_from: int = Field(default=0, ge=0, description="first task that is judged")
    seeds: tuple[int, ...] = Field(default=(1, 2, 3, 4, 5), min_length=1)
    spec: dict[str, Any] = Field(default_factory=dict, description="of every run")
    variants: dict[str, Variant] = Field(default_factory=lambda: {"": Variant()})
    axis: str = Field(default="", description="what the variants' values are, for a sweep")
    plugins: tuple[str, ...] = Field(default=(), description="schedulers to add to the arena")
    baseline: str = Field(default="greedy", description="whom the speed-ups are measured against")
    compare: tuple[str, ...] = Field(
        default=(), description="schedulers that the paired tests compare with all others"
    )
    reference: Reference | None = None
    claims: tuple[Claim, ...] = Field(default=(), description="what the report judges")
    figures: tuple[Figure, ...] = Field(min_length=1)

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) != len(seeds):
            raise ValueError("a seed is named twice")
        if not all(0 <= seed < 2**63 for seed in seeds):
            raise ValueError("a seed is at least 0 and below 2**63")
        return seeds

    @model_validator(mode="after")
    def _judges_something(self) -> Experiment:
        if self.judge_from >= self.tasks:
            raise ValueError(f"judge_from ({self.judge_from}) leaves none of {self.tasks} tasks")
        for name in self.variants:
            self.run_spec(name, self.seeds[0])
        self._check_names()
        return self

    def _check_names(self) -> None:
        """Where every variant says who competes, nobody else can be compared."""
        named = [self.run_spec(each, self.seeds[0]).schedulers for each in self.variants]
        if not all(named):
            return
        competing = {name for names in named for name in names}
        asked = {
            "baseline": (self.baseline,),
            "compare": self.compare,
            "reference": tuple(self.reference.total_time) if self.reference else (),
            "claims": tuple(name for claim in self.claims for name in claim.names),
        }
        for field, names in asked.items():
            absent = sorted(set(names) - competing)
            if absent:
                raise ValueError(f"{field}: {', '.join(absent)} not among the schedulers")

    def run_spec(self, variant: str, seed: int) -> RunSpec:
        """The spec of one run, checked."""
        data = merged(self.spec, self.variants[variant].spec)
        name = "/".join(filter(None, (self.name, variant, str(seed))))
        try:
            return RunSpec.parse({**data, "name": name, "tasks": self.tasks, "seed": seed})
        except SpecError as error:
            raise ValueError(f"spec of {variant or 'every run'}: {error}") from None

    def runs(self) -> Iterator[tuple[str, int]]:
        """Seed by seed, so that an experiment that is cut short has whole comparisons."""
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
    folder = resources.files("services.lab") / "experiments"
    files = sorted((file for file in folder.iterdir()), key=lambda file: file.name)
    found = [parse(yaml.safe_load(file.read_text()), file.name) for file in files]
    return {experiment.name: experiment for experiment in found}


def load(name: str) -> Experiment:
    """A built-in experiment, or a file of one's own."""
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
