"""A platform file: a cluster, what its machines need of the physics, and measured task times.

It becomes fields of a RunSpec; see `PlatformFile.spec_fields`. Every mistake in a file is reported
with its line, the field and what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, model_validator

from shared.domain.hardware.cluster_spec import Cluster
from shared.domain.hardware.measured_times import Curve
from shared.domain.spec import Physics, RunSpec
from shared.domain.spec_model import SpecModel, problem_at
from shared.domain.validation_messages import explain, location
from shared.errors import SpecError
from shared.platforms.times_table import read_table
from shared.platforms.yaml_lines import YamlLines

# The fields of the physics that belong to a machine; the others are the run's.
MACHINE_PHYSICS = (
    "noise", "memory_mb_per_size", "size_unit", "size_exponent", "intensity_offset",
    "speedup_slope", "bandwidth_mb_s", "gpu_watts", "cpu_watts", "gpu_dollars_per_s",
    "cpu_dollars_per_s", "dollars_per_kwh", "decision_s",
)  # fmt: skip


class PlatformFile(SpecModel):
    """The contents of a platform file."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$",
        description="letters, digits, `_`, `.` and `-`, at most 64",
    )
    description: str = ""
    sources: tuple[str, ...] = Field(default=(), description="where the figures come from")
    assumed: tuple[str, ...] = Field(
        default=(), description="what is neither measured nor from a source"
    )
    cluster: Cluster = Field(description="devices, nodes and network, as in a run spec")
    physics: Physics = Physics()
    times: tuple[Curve, ...] = Field(
        default=(), description="measured times; left out: the formula of the physics"
    )

    @model_validator(mode="after")
    def _curves_are_of_devices(self) -> PlatformFile:
        types = {device.type for device in self.cluster.devices} or {"cpu", "gpu"}
        seen: set[tuple[str, str]] = set()
        for number, curve in enumerate(self.times):
            if curve.type not in types:
                message = (
                    f"no device type {curve.type}; in `cluster` are {', '.join(sorted(types))}"
                )
                raise problem_at(message, "times", number, "type")
            if (curve.kind, curve.type) in seen:
                message = f"{curve.kind} on {curve.type} is given twice; use one curve"
                raise problem_at(message, "times", number)
            seen.add((curve.kind, curve.type))
        return self

    def spec_fields(self) -> dict[str, Any]:
        """What the file gives of a RunSpec, as plain data."""
        document = self.model_dump(mode="json", exclude_unset=True)
        physics = document.get("physics", {})
        if self.times:
            physics["measured"] = document["times"]
        fields = {"cluster": document["cluster"], "physics": physics}
        return {part: values for part, values in fields.items() if values}


def load(path: Path) -> PlatformFile:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SpecError([f"{path}: not a text file in UTF-8, so not a platform file"]) from None
    except OSError as error:
        raise SpecError([f"{path}: cannot be read: {error.strerror}"]) from None
    return parse(text, str(path), path.parent)


def parse(text: str, source: str, folder: Path) -> PlatformFile:
    """`source` names the file in messages; `folder` is where its table of times is."""
    data, lines = _read_yaml(text, source)
    problems = [
        (line, f"{key}: is given twice, first in line {first}")
        for line, key, first in lines.repeated_keys()
    ]
    problems += ((lines.line_of(path), message) for path, message in _misplaced(data))
    if isinstance(data.get("times"), str):
        table = data["times"]
        try:
            data = {**data, "times": read_table(folder / table)}
        except SpecError as error:
            problems += ((lines.line_of(["times"]), f"times: {each}") for each in error.problems)
            data = {key: value for key, value in data.items() if key != "times"}
    platform = None
    try:
        platform = PlatformFile.model_validate(data)
    except ValidationError as error:
        for problem, message in zip(
            error.errors(), explain(error, PlatformFile, "platform"), strict=True
        ):
            problems.append((lines.line_of(location(problem)), message))
    if platform is None or problems:
        raise SpecError([f"{source}, line {line}: {what}" for line, what in sorted(problems)])
    RunSpec.parse(platform.spec_fields())
    return platform


@cache
def shipped() -> dict[str, PlatformFile]:
    """The platforms that come with the arena, by name."""
    folder = resources.files("shared.platforms") / "shipped"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    platforms = [parse(file.read_text(encoding="utf-8"), file.name, Path()) for file in files]
    return {platform.name: platform for platform in platforms}


def find(name_or_file: str) -> PlatformFile:
    """A shipped platform by its name, or a platform file."""
    path = Path(name_or_file)
    if path.suffix in (".yaml", ".yml") or path.exists():
        return load(path)
    known = shipped()
    if name_or_file not in known:
        raise SpecError(
            [f"no platform {name_or_file!r}; shipped: {', '.join(known)}; or give a file.yaml"]
        )
    return known[name_or_file]


def _read_yaml(text: str, source: str) -> tuple[dict[str, Any], YamlLines]:
    try:
        data = yaml.safe_load(text)
        lines = YamlLines(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise SpecError([f"{source}{line}: not YAML: {error.problem or error.context}"]) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise SpecError([f"{source}: not YAML: {error}"]) from None
    if data is None:
        raise SpecError([f"{source}: empty; a platform file needs at least `name` and `cluster`"])
    if not isinstance(data, dict):
        allowed = ", ".join(PlatformFile.model_fields)
        kind = type(data).__name__
        raise SpecError([f"{source}, line 1: should be a mapping with {allowed}, not a {kind}"])
    return {str(key): value for key, value in data.items()}, lines


def _misplaced(data: dict[str, Any]) -> Iterator[tuple[list[str], str]]:
    """Fields of the physics that a platform has not. Those that nothing has are reported by the
    model."""
    physics = data.get("physics")
    for key in physics if isinstance(physics, dict) else ():
        if key in Physics.model_fields and key not in MACHINE_PHYSICS:
            hint = "; give the curves as `times`" if key == "measured" else ""
            message = (
                f"physics.{key}: belongs to a run, not to a platform{hint}; "
                f"allowed: {', '.join(MACHINE_PHYSICS)}"
            )
            yield ["physics", key], message
