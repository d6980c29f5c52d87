"""Import of our own CSV of measured times; see docs/platforms.md for its columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from services.lab.platforms.data_sheets import assumptions, describe
from services.lab.platforms.imported import Imported
from shared.platforms.times_table import read_table


def import_csv(source: Path, name: str) -> Imported:
    """The devices are one of each type that the table names; also reads Parquet."""
    curves = read_table(source)
    types = list(dict.fromkeys(curve.type for curve in curves))
    kinds = {curve.kind for curve in curves}
    points = sum(len(curve.sizes) for curve in curves)
    with_deviation = bool(curves) and all(curve.deviations for curve in curves)
    fields: dict[str, Any] = {
        "name": name,
        "description": f"Measured times from {source.name}.",
        "sources": [f"task times: {source.name}"],
        "cluster": {"devices": [describe(each) for each in types]},
    }
    if with_deviation:
        fields["physics"] = {"noise": "measured"}
    return Imported(
        fields,
        curves,
        took=[f"{points:,} times of {len(kinds)} kinds on {', '.join(types)}"],
        left_out=[] if with_deviation else ["noise: not every time has a deviation"],
        assumed=[
            *(f"count of {each}: 1" for each in types),
            *assumptions(dict.fromkeys(types, ())),
        ],
    )
