"""The programs that tasks may run as `command:NAME`: only those in the operator's file."""

from __future__ import annotations

from pathlib import Path

from shared.domain.spec import read_mapping
from shared.errors import SpecError


def load_commands(path: Path | None) -> dict[str, list[str]]:
    """Each name with the program and its arguments, from YAML or JSON."""
    if path is None:
        return {}
    data = read_mapping(path)
    if not isinstance(data, dict):
        raise SpecError([f"{path}: a mapping of names to lists of arguments is expected"])
    for name, arguments in data.items():
        if (
            not isinstance(name, str)
            or not isinstance(arguments, list)
            or not arguments
            or not all(isinstance(each, str) for each in arguments)
        ):
            raise SpecError([f"{path}: {name}: a list of strings is expected, the program first"])
    return data
