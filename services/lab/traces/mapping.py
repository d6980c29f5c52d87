"""Which column of a foreign trace becomes what: every default, and a person's changes over them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from services.lab.traces.report import TraceError
from services.lab.traces.rules import Declared, Inversion, Rule, Rules, SwfRules
from shared.errors import SpecError
from shared.explain import explain
from shared.spec import read_mapping

MIB = 1.048576  # MB in a MiB

OWN = Rules(
    size=Rule(column=("size",)),
    intensity=Rule(column=("compute_intensity",)),
    memory=Rule(column=("memory_required",)),
    arrival=Rule(column=("arrival_time",)),
    arrivals_from_first=False,
    name="task_id",
    parents="dependencies",
)
SWF = SwfRules(
    seconds=Rule(
        column=("run_time",),
        proxy=True,
        note="measured, but on all processors of the job; here they are one CPU",
    ),
    intensity=Rule(
        column=("cpu_time",),
        over="run_time",
        otherwise=0.5,
        low=0.0,
        high=1.0,
        proxy=True,
        note="SWF has none: the share of the run time that the processors computed",
    ),
    memory=Rule(
        column=("used_memory", "requested_memory"),
        times="processors",
        scale=1.024e-3,
        otherwise=1000.0,
        proxy=True,
        note="kB per processor, times processors; what a GPU would need is not known",
    ),
    arrival=Rule(column=("submit_time",)),
    name="job_number",
    parents="preceding_job",
)
ALIBABA = Rules(
    seconds=Rule(
        column=("deletion_time",),
        minus="scheduled_time",
        proxy=True,
        note="measured, but on the pod's own CPUs and GPUs; here it is the CPU's time",
    ),
    intensity=Rule(
        column=("gpu_milli",),
        times="num_gpu",
        scale=1e-3,
        otherwise=0.0,
        low=0.0,
        high=1.0,
        proxy=True,
        note="not recorded: how much of a GPU the pod asked for",
    ),
    memory=Rule(
        column=("memory_mib",),
        scale=MIB,
        proxy=True,
        note="main memory that the pod asked for; GPU memory is not recorded",
    ),
    arrival=Rule(column=("creation_time",)),
)
WFCOMMONS = Rules(
    seconds=Rule(
        column=("runtimeInSeconds", "runtime"),
        proxy=True,
        note="measured, but on the machine of the trace, with all cores of the task",
    ),
    intensity=Rule(
        column=("avgCPU",),
        scale=0.01,
        otherwise=0.5,
        low=0.0,
        high=1.0,
        proxy=True,
        note="not recorded: the CPU's utilisation, cut at one core",
    ),
    memory=Rule(
        column=("memoryInBytes",),
        scale=1e-6,
        otherwise=1000.0,
        proxy=True,
        note="main memory that was used; what a GPU would need is not known",
    ),
    arrival=Rule(otherwise=0.0, note="a workflow is submitted whole; its parents order it"),
    name="id",
    parents="parents",
)


class Mapping(Declared):
    """Every number that turns a foreign trace into tasks."""

    physics: Inversion | None = Field(default=None, description="none: the run's own")
    csv: Rules = OWN
    swf: SwfRules = SWF
    alibaba: Rules = ALIBABA
    wfcommons: Rules = WFCOMMONS

    def rules(self, format: str) -> Rules:
        # A Parquet file is our CSV in another dress.
        found: Rules = getattr(self, "csv" if format == "parquet" else format)
        return found


def load_mapping(path: Path) -> Mapping:
    try:
        data = read_mapping(path)
    except SpecError as error:
        raise TraceError(str(error)) from None
    return parse_mapping(data, str(path))


def parse_mapping(data: Any, source: str = "mapping") -> Mapping:
    """A person's changes over the defaults."""
    if not isinstance(data, dict | None):
        raise TraceError(f"{source}: a mapping has the keys {', '.join(Mapping.model_fields)}")
    merged = Mapping().model_dump()
    for key, change in (data or {}).items():
        usual = merged.get(key)
        if isinstance(change, dict) and isinstance(usual, dict):
            change = _changed(usual, change)
        merged[key] = change
    try:
        return Mapping.model_validate(merged)
    except ValidationError as error:
        lines = [f"{source}: {line}" for line in explain(error, Mapping, "mapping")]
        raise TraceError("\n".join(lines)) from None


def _changed(usual: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A rule that names a column replaces the usual one; another changes what it names."""
    result = dict(usual)
    if "size" in change or "seconds" in change:
        result.update(size=None, seconds=None)
    for field, rule in change.items():
        before = usual.get(field)
        if isinstance(rule, dict) and isinstance(before, dict) and "column" not in rule:
            result[field] = {**before, **rule}
        else:
            result[field] = rule
    return result
