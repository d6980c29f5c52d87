"""The base of all parts of a RunSpec, and the kinds of numbers that they share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class SpecModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def problem_at(message: str, *path: int | str) -> PydanticCustomError:
    """To be raised by a validator that knows which field below its own is wrong."""
    return PydanticCustomError("placed", "{message}", {"message": message, "at": path})
