"""Rules that compute a number of a task from the columns of a trace.

The value is that of the first known column, minus, times or over another column, then scaled and
shifted. Where no column has a value it is `otherwise`; without `otherwise` the line is skipped.
`proxy` marks a number that stands for something the trace does not record.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from shared.domain.spec_model import Positive

# The fields of `Rules` that are rules.
RULE_FIELDS = (
    "size", "seconds", "intensity", "memory", "arrival", "width", "cpu_width", "divisible", "home",
)  # fmt: skip


class Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Rule(Declared):
    column: tuple[str, ...] = Field(default=(), description="the first with a value is used")
    minus: str | None = Field(default=None, description="a column to subtract")
    times: str | None = Field(default=None, description="a column to multiply with")
    over: str | None = Field(default=None, description="a column to divide by")
    scale: float = Field(default=1.0, allow_inf_nan=False)
    offset: float = Field(default=0.0, allow_inf_nan=False)
    otherwise: float | None = Field(
        default=None, allow_inf_nan=False, description="without any value; default: skip the line"
    )
    low: float | None = Field(default=None, description="values below are raised to this")
    high: float | None = Field(default=None, description="values above are lowered to this")
    date: str | None = Field(
        default=None, description="the columns are dates: `iso`, or a format such as %d.%m.%Y %H:%M"
    )
    proxy: bool = Field(default=False, description="stands for something the trace lacks")
    note: str = Field(default="", description="what it stands for")

    @field_validator("column", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else (() if value is None else value)

    @model_validator(mode="after")
    def _has_a_value(self) -> Rule:
        if not self.column and self.otherwise is None:
            raise ValueError("name a column, or the value to take otherwise")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low ({self.low:g}) is above high ({self.high:g})")
        return self

    def columns(self) -> set[str]:
        return {*self.column, *(name for name in (self.minus, self.times, self.over) if name)}

    def source(self) -> str:
        text = " or ".join(self.column)
        for sign, name in (("-", self.minus), ("×", self.times), ("/", self.over)):
            text += f" {sign} {name}" if name else ""
        return text

    def formula(self) -> str:
        """Such as `cpu_time / run_time, else 0.5`."""
        if not self.column:
            return f"{self.otherwise:g}, a constant"
        text = self.source()
        text += f" × {self.scale:.6g}" if self.scale != 1 else ""
        text += f" + {self.offset:g}" if self.offset else ""
        text += f", else {self.otherwise:g}" if self.otherwise is not None else ""
        limits = [f"{value:g}" for value in (self.low, self.high) if value is not None]
        return text + (f", within {'..'.join(limits)}" if len(limits) == 2 else "")


class Rules(Declared):
    """How the lines of a format become tasks. Either `size`, or `seconds`: the size is then that of
    a task that takes as long on the device it was recorded on."""

    size: Rule | None = None
    seconds: Rule | None = None
    recorded_on: str = Field(
        default="cpu",
        description="where `seconds` were measured: cpu, gpu, or a device type of the platform",
    )
    intensity: Rule
    memory: Rule = Field(description="MB of an accelerator's memory")
    arrival: Rule = Field(description="seconds")
    arrivals_from_first: bool = Field(default=True, description="the first task arrives at 0")
    width: Rule = Field(
        default=Rule(otherwise=1),
        description="how many devices it had; 0: none of those in `recorded_on`, but CPUs",
    )
    cpu_width: Rule = Field(
        default=Rule(otherwise=1),
        description="how many CPUs a task of width 0 had, rounded up; a CPU of the platform may "
        "be a core or a socket",
    )
    divisible: Rule = Field(
        default=Rule(otherwise=0),
        description="0: all of it runs on one device; else it may be split",
    )
    home: Rule = Field(default=Rule(otherwise=-1), description="number of its data's node; -1: all")
    kind: str | None = Field(default=None, description="the column with the task's kind")
    needs_measured_times: bool = Field(
        default=False, description="the size only has a meaning in a table of measured times"
    )
    name: str | None = Field(default=None, description="the column with the task's name")
    parents: str | None = Field(
        default=None, description="the column with the names of the parents"
    )

    @model_validator(mode="after")
    def _size_or_seconds(self) -> Rules:
        if (self.size is None) == (self.seconds is None):
            raise ValueError("give either size or seconds")
        return self

    def fields(self) -> dict[str, Rule]:
        rules = {name: getattr(self, name) for name in RULE_FIELDS}
        return {name: rule for name, rule in rules.items() if rule is not None}

    def columns(self) -> set[str]:
        return set().union(*(rule.columns() for rule in self.fields().values()))

    def missing(self, header: Container[str]) -> list[str]:
        """Columns that the header lacks and for which there is neither another nor a default."""
        missing: set[str] = set()
        for rule in self.fields().values():
            if rule.otherwise is None:
                missing |= {name for name in rule.columns() - {*rule.column} if name not in header}
                if not any(name in header for name in rule.column):
                    missing |= {*rule.column}
        return sorted(missing)

    def dates(self) -> dict[str, str]:
        """The format of each column of dates."""
        rules = self.fields().values()
        return {name: rule.date for rule in rules if rule.date for name in rule.columns()}


class SwfRules(Rules):
    keep_status: tuple[int, ...] = Field(
        default=(-1, 0, 1),
        description="unknown, failed and completed jobs; not cancelled ones (5), nor the parts "
        "(2, 3, 4) of a job that has a line of its own",
    )


class Inversion(Declared):
    """The physics to invert: T = (N / size_unit) ** size_exponent / (I + offset)."""

    size_unit: Positive = 1000
    size_exponent: Positive = 1.5
    intensity_offset: Positive = 0.5
