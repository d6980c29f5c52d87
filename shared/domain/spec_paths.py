"""Changes of a spec that are given as paths: `cluster.devices.1.count=5`.

The value is YAML: a number, a word, `[eft, greedy]`, `{kind: bursty}`. Where the spec has a list of
names, `eft,greedy` is one too. `null` is a field's default, and removes an entry of a list; the
index behind the last entry adds one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import yaml

from shared.domain.spec import RunSpec
from shared.errors import SpecError


def changed_spec(spec: RunSpec, changes: Iterable[str]) -> RunSpec:
    """The spec with these changes; SpecError names each path that is wrong, and what is allowed."""
    data = spec.model_dump(mode="json")
    problems = []
    for change in changes:
        try:
            set_path(data, change)
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return RunSpec.parse(data)


def parse_change(change: str) -> tuple[str, Any]:
    """The path and the value of `path=value`."""
    path, equals, text = change.partition("=")
    path = path.strip()
    if not equals or not path:
        raise SpecError([f"{change!r}: a change is PATH=VALUE, such as cluster.gpus=5"])
    try:
        return path, yaml.safe_load(text)
    except yaml.YAMLError:
        raise SpecError([f"{path}: {text!r} is not valid YAML; quote text with ' or \""]) from None


def set_path(data: dict[str, Any], change: str) -> None:
    """Set one field of a complete spec as plain data. Whether the value fits is checked later."""
    path, value = parse_change(change)
    *above, last = keys = path.split(".")
    node: Any = data
    for depth, key in enumerate(above):
        node = node[_key(node, key, keys[:depth], path)]
    if isinstance(node, list) and last == str(len(node)):
        node.append(value)
        return
    key = _key(node, last, keys[:-1], path)
    if path == "workload.preset" and isinstance(value, str):
        # The figures of the preset before would stay.
        for name in ("mix", "arrival_rate"):
            node.pop(name, None)
    if value is None:
        node.pop(key)
    elif isinstance(node[key], list) and isinstance(value, str):
        node[key] = [name.strip() for name in value.split(",") if name.strip()]
    else:
        node[key] = value


def _key(node: Any, key: str, above: list[str], path: str) -> Any:
    """The key or index, which must be there: a complete spec has all fields."""
    where = ".".join(above) or "the spec"
    if isinstance(node, dict):
        if key not in node:
            close = difflib.get_close_matches(key, node, n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            allowed = ", ".join(sorted(node))
            raise SpecError([f"{path}: {where} has no {key!r}{hint}; allowed: {allowed}"])
        return key
    if isinstance(node, list):
        if not key.isdigit() or int(key) >= len(node):
            allowed = f"0 to {len(node) - 1}" if node else "nothing: it is empty"
            hint = "; the short form has cluster.gpus and cluster.cpus" if not node else ""
            hint = hint if path.startswith("cluster.devices") else ""
            raise SpecError([f"{path}: {where} has no entry {key}; allowed: {allowed}{hint}"])
        return int(key)
    raise SpecError([f"{path}: {where} is {node!r}, which has no fields below it"])
