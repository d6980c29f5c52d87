"""Which column of a trace becomes which column of a task: the defaults, and a user's changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from services.lab.traces.column_rules import Declared, Inversion, Rules, SwfRules
from services.lab.traces.problem_report import TraceError
from shared.domain.spec import read_mapping
from shared.domain.validation_messages import explain
from shared.errors import SpecError

_DEFAULT = read_mapping(Path(__file__).parent / "default_mapping.yaml")


class Mapping(Declared):
    """Every rule that turns a trace into tasks."""

    physics: Inversion | None = Field(default=None, description="default: the run's own")
    csv: Rules = Rules(**_DEFAULT["csv"])
    swf: SwfRules = SwfRules(**_DEFAULT["swf"])
    alibaba: Rules = Rules(**_DEFAULT["alibaba"])
    wfcommons: Rules = Rules(**_DEFAULT["wfcommons"])
    gavel: Rules = Rules(**_DEFAULT["gavel"])
    philly: Rules = Rules(**_DEFAULT["philly"])
    helios: Rules = Rules(**_DEFAULT["helios"])

    def rules(self, format: str) -> Rules:
        # A Parquet file has the columns of our CSV.
        rules: Rules = getattr(self, "csv" if format == "parquet" else format)
        return rules


def load_mapping(path: Path) -> Mapping:
    try:
        data = read_mapping(path)
    except SpecError as error:
        raise TraceError(str(error)) from None
    return parse_mapping(data, str(path))


def parse_mapping(data: Any, source: str = "mapping") -> Mapping:
    """The defaults with a user's changes."""
    if not isinstance(data, dict | None):
        raise TraceError(f"{source}: a mapping has the keys {', '.join(Mapping.model_fields)}")
    merged = Mapping().model_dump()
    for key, change in (data or {}).items():
        default = merged.get(key)
        if isinstance(change, dict) and isinstance(default, dict):
            change = _changed(default, change)
        merged[key] = change
    try:
        return Mapping.model_validate(merged)
    except ValidationError as error:
        lines = [f"{source}: {line}" for line in explain(error, Mapping, "mapping")]
        raise TraceError("\n".join(lines)) from None


def _changed(default: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A rule that names a column replaces the default; any other rule changes fields of it."""
    result = dict(default)
    if "size" in change or "seconds" in change:
        result.update(size=None, seconds=None)
    for field, rule in change.items():
        before = default.get(field)
        if isinstance(rule, dict) and isinstance(before, dict) and "column" not in rule:
            result[field] = {**before, **rule}
        else:
            result[field] = rule
    return result
