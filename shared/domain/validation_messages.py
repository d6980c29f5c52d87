"""Validation errors of data that a user wrote, as lines that say what is allowed."""

from __future__ import annotations

import difflib
import reprlib
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

# Long values are shortened.
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxlong = 80


def explain(error: ValidationError, model: type[BaseModel], whole: str) -> list[str]:
    """One line for each problem; `whole` is the name for problems of the data as a whole."""
    return [_line(problem, model, whole) for problem in error.errors()]


def location(problem: Any) -> tuple[int | str, ...]:
    """Where a problem is; see `problem_at`."""
    return (*problem["loc"], *problem.get("ctx", {}).get("at", ()))


def _line(problem: Any, model: type[BaseModel], whole: str) -> str:
    path, around = _follow(location(problem), model)
    where = ".".join(path) or whole
    if problem["type"] == "extra_forbidden":
        allowed = sorted(_fields(around))
        close = difflib.get_close_matches(path[-1], allowed, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        return f"{where}: unknown key{hint}; allowed: {', '.join(allowed)}"
    if problem["type"] == "missing":
        return f"{where}: {problem['msg']}{_meaning(around, path[-1])}"
    value = problem["input"]
    simple = value is None or isinstance(value, str | int | float)
    shown = f" (got {_SHOWN.repr(value)})" if simple else ""
    message = problem["msg"].removeprefix("Value error, ").replace("valid tuple", "list")
    message = message.partition(", unable to parse")[0].replace("integer", "whole number")
    return f"{where}: {message}{shown}"


def _follow(location: tuple[int | str, ...], model: type[BaseModel]) -> tuple[list[str], Any]:
    """The keys as they were written, and the type around the last one."""
    path: list[str] = []
    around: Any = None
    node: Any = model
    for part in location:
        # In a union, the tag of the model is a part of the location, but not a key.
        if (tagged := _tagged_model(node, part)) is not None:
            node = tagged
            continue
        if isinstance(part, str) and _is_choice_of_values(node):
            continue
        path.append(str(part))
        around, node = node, _inside(node, part)
    return path, around


def _is_choice_of_values(kind: Any) -> bool:
    """Such as a number or a word. The location then has the name of the choice, which is no key."""
    choices = _choices(kind)
    return len(choices) > 1 and not any(
        _is_model(each) or get_origin(each) is dict for each in choices
    )


def _tagged_model(kind: Any, part: int | str) -> Any:
    models = [each for each in _choices(kind) if _is_model(each)]
    if len(models) < 2:
        return None
    for model in models:
        for field in model.model_fields.values():
            if get_origin(field.annotation) is Literal and part in get_args(field.annotation):
                return model
    return None


def _inside(kind: Any, part: int | str) -> Any:
    """The type under that key or index; None: unknown."""
    for choice in _choices(kind):
        if _is_model(choice):
            return _fields(choice).get(str(part))
        if get_origin(choice) is dict:
            return get_args(choice)[1]
        if isinstance(part, int) and get_args(choice):
            return get_args(choice)[0]
    return None


def _meaning(kind: Any, key: str) -> str:
    """The description of a field, if it has one."""
    for choice in _choices(kind):
        if _is_model(choice) and key in choice.model_fields:
            described = choice.model_fields[key].description
            return f": {described}" if described else ""
    return ""


def _fields(kind: Any) -> dict[str, Any]:
    """The keys that such a type allows, with the type of each."""
    for choice in _choices(kind):
        if _is_model(choice):
            return {
                field.alias or name: field.annotation for name, field in choice.model_fields.items()
            }
    return {}


def _choices(kind: Any) -> list[Any]:
    if get_origin(kind) is Annotated:
        return _choices(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return [each for part in get_args(kind) for each in _choices(part)]
    return [kind]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
