"""The result of an importer: a platform, and a list of what it took and left out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from services.lab.atomic_write import replace_file, replace_text
from shared.domain.hardware.measured_times import Curve
from shared.errors import ArenaError
from shared.platforms.platform_file import PlatformFile, parse
from shared.platforms.times_table import write_table

# More measured points than this are written into a Parquet file beside the YAML file.
MOST_INLINE_POINTS = 2000
YAML_STYLE: Any = {"sort_keys": False, "allow_unicode": True}


class ImportFailed(ArenaError):
    """A source from which no platform can be made."""


@dataclass(frozen=True, slots=True)
class Imported:
    """`fields` are those of a platform file, without `times` and `assumed`."""

    fields: dict[str, Any]
    curves: tuple[Curve, ...] = ()
    took: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)

    def with_counts(self, counts: dict[str, int]) -> Imported:
        """The import with these numbers of devices by type, which the source may not know."""
        devices = [dict(device) for device in self.fields["cluster"]["devices"]]
        types = [device["type"] for device in devices]
        for name, count in counts.items():
            if name not in types:
                raise ImportFailed(f"--count {name}: no such type; imported: {', '.join(types)}")
            devices[types.index(name)]["count"] = count
        cluster = {**self.fields["cluster"], "devices": devices}
        replaced = {f"count of {name}" for name in counts}
        return Imported(
            {**self.fields, "cluster": cluster},
            self.curves,
            self.took,
            self.left_out,
            [each for each in self.assumed if each.partition(":")[0] not in replaced],
        )

    def platform(self) -> PlatformFile:
        content = {**self.fields, "assumed": self.assumed, "times": self.curves}
        return PlatformFile.model_validate(content)

    def write(self, path: Path) -> PlatformFile:
        """The platform as it is read again from the written file."""
        content: dict[str, Any] = {**self.fields, "assumed": self.assumed}
        points = sum(len(curve.sizes) for curve in self.curves)
        if points > MOST_INLINE_POINTS:
            table = path.with_suffix(".parquet")
            with replace_file(table) as part:
                write_table(self.curves, part)
            content["times"] = table.name
        elif self.curves:
            content["times"] = [
                curve.model_dump(mode="json", exclude_defaults=True) for curve in self.curves
            ]
        text = "".join(_lines(content))
        platform = parse(text, str(path), path.parent)
        replace_text(path, text)
        return platform


def _lines(content: dict[str, Any]) -> Iterator[str]:
    """The YAML text, with each curve and each device on one line."""
    yield "# A platform file: docs/platforms.md\n"
    for key, value in content.items():
        if key == "times" and isinstance(value, list):
            yield "times:\n"
            for curve in value:
                text = yaml.safe_dump(curve, default_flow_style=True, width=math.inf, **YAML_STYLE)
                yield f"  - {text}"
        elif value:
            # Without a style, the innermost lists and mappings are written on one line.
            style = None if isinstance(value, dict) else False
            yield yaml.safe_dump({key: value}, default_flow_style=style, width=100, **YAML_STYLE)


def digits(value: float) -> float:
    """Round to ten digits, more than any source has."""
    return float(f"{value:.10g}")
