"""How a number of a foreign trace becomes a number of a task.

A rule says where it comes from: the first of its columns that is known, less another, times
another, over another, then scaled and shifted. What no column says is `otherwise`, and without that
the line is skipped. `proxy` is for people: the number stands in for something the trace does not
have.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from shared.spec import Positive


class Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Rule(Declared):
    column: tuple[str, ...] = Field(default=(), description="the first that is known counts")
    minus: str | None = Field(default=None, description="a column that is taken away")
    times: str | None = Field(default=None, description="a column to multiply with")
    over: str | None = Field(default=None, description="a column to divide by")
    scale: float = Field(default=1.0, allow_inf_nan=False)
    offset: float = Field(default=0.0, allow_inf_nan=False)
    otherwise: float | None = Field(
        default=None, allow_inf_nan=False, description="where nothing is known; none: skip the line"
    )
    low: float | None = Field(default=None, description="values below are raised to this")
    high: float | None = Field(default=None, description="values above are cut to this")
    proxy: bool = Field(default=False, description="it stands in for something else")
    note: str = Field(default="", description="what it stands for, for people")

    @field_validator("column", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else (() if value is None else value)

    @model_validator(mode="after")
    def _says_something(self) -> Rule:
        if not self.column and self.otherwise is None:
            raise ValueError("name a column, or the value to take otherwise")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low ({self.low:g}) is above high ({self.high:g})")
        return self

    def columns(self) -> set[str]:
        return {*self.column, *(name for name in (self.minus, self.times, self.over) if name)}

    def source(self) -> str:
        said = " or ".join(self.column)
        for sign, name in (("-", self.minus), ("×", self.times), ("/", self.over)):
            said += f" {sign} {name}" if name else ""
        return said

    def formula(self) -> str:
        """For people, such as `cpu_time / run_time, else 0.5`."""
        if not self.column:
            return f"{self.otherwise:g}, a constant"
        said = self.source()
        said += f" × {self.scale:.6g}" if self.scale != 1 else ""
        said += f" + {self.offset:g}" if self.offset else ""
        said += f", else {self.otherwise:g}" if self.otherwise is not None else ""
        limits = [f"{value:g}" for value in (self.low, self.high) if value is not None]
        return said + (f", within {'..'.join(limits)}" if len(limits) == 2 else "")


class Rules(Declared):
    """How the lines of a format become tasks. Either `size`, or `seconds` that it is derived from
    by turning the physics round: the task takes as long on the virtual CPU as it took there."""

    size: Rule | None = None
    seconds: Rule | None = None
    intensity: Rule
    memory: Rule = Field(description="MB")
    arrival: Rule = Field(description="seconds")
    arrivals_from_first: bool = Field(default=True, description="the first task arrives at 0")
    name: str | None = Field(default=None, description="the column that parents are named by")
    parents: str | None = Field(default=None, description="the column that names the parents")

    @model_validator(mode="after")
    def _one_way_to_size(self) -> Rules:
        if (self.size is None) == (self.seconds is None):
            raise ValueError("give either size or seconds")
        return self

    def fields(self) -> dict[str, Rule]:
        way = ("size", self.size) if self.size is not None else ("seconds", self.seconds)
        every = dict([way, ("intensity", self.intensity), ("memory", self.memory)])
        return {name: rule for name, rule in {**every, "arrival": self.arrival}.items() if rule}

    def columns(self) -> set[str]:
        return set().union(*(rule.columns() for rule in self.fields().values()))


class SwfRules(Rules):
    keep_status: tuple[int, ...] = Field(
        default=(-1, 0, 1),
        description="unknown, failed and completed jobs; not cancelled ones (5), nor the parts "
        "(2, 3, 4) of a job that has a line of its own",
    )


class Inversion(Declared):
    """The physics that is turned round: T = (N / size_unit) ** size_exponent / (I + offset)."""

    size_unit: Positive = 1000
    size_exponent: Positive = 1.5
    intensity_offset: Positive = 0.5
