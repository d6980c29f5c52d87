"""Models of rows whose fields are declared elsewhere, such as columns."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, create_model, model_validator

# Older clients use these names of results' columns: HTTP rows have both.
LEGACY_NAMES = {
    "scheduler": "scheduler_name",
    "time": "actual_time",
    "energy": "energy_consumption",
    "cost": "execution_cost",
}


def model_of(fields: dict[str, Any], base: type[BaseModel] = BaseModel) -> Any:
    """A base class with these fields."""
    return create_model("Row", __base__=base, **fields)


class _WithLegacyNames(BaseModel):
    @model_validator(mode="before")
    @classmethod
    def _add(cls, row: dict[str, Any]) -> dict[str, Any]:
        return {**row, **{old: row[name] for name, old in LEGACY_NAMES.items()}}


def row_of(fields: dict[str, Any]) -> Any:
    """A base class with these fields and their legacy names."""
    legacy: dict[str, Any] = {
        old: (
            fields[name][0],
            Field(description=f"same as `{name}`", json_schema_extra={"deprecated": True}),
        )
        for name, old in LEGACY_NAMES.items()
    }
    return model_of({**fields, **legacy}, _WithLegacyNames)
