"""Classes of a user's own file or of an installed package: policies and learners."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from importlib import metadata
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeVar, cast

from shared.errors import ArenaError

Base = TypeVar("Base")

# Groups of entry points: what installed packages offer.
POLICY_GROUP, LEARNER_GROUP = "hybrid.policies", "hybrid.learners"


class PluginError(ArenaError):
    """A file or module cannot be loaded."""


def entry_points(group: str) -> dict[str, str]:
    """The `package.module:Class` of each name that an installed package offers."""
    return {each.name: each.value for each in metadata.entry_points(group=group)}


def load_module(location: str) -> ModuleType:
    """Load a file (`path/to/file.py`) or a module of a package (`package.module`)."""
    return _load_file(Path(location)) if location.endswith(".py") else _import(location)


def fingerprint(reference: str) -> bytes:
    """The hash of the file that a reference names; empty for a package, or without a file."""
    location = reference.partition(":")[0]
    path = Path(location)
    if not (location.endswith(".py") and path.is_file()):
        return b""
    return hashlib.sha256(path.read_bytes()).digest()


def classes_in(
    module: ModuleType, base: Callable[..., Base], class_name: str = ""
) -> list[type[Base]]:
    """The classes that can be used: the one of that name, or those that the module defines."""
    return [
        cast(type[Base], value)
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, cast(Any, base))
        and not inspect.isabstract(value)
        and (value.__name__ == class_name if class_name else value.__module__ == module.__name__)
    ]


def missing_methods(module: ModuleType) -> str:
    """What keeps classes of the module from being used, as the end of a sentence; or nothing."""
    return "".join(
        f"; {name} has no {', '.join(sorted(value.__abstractmethods__))}"
        for name, value in vars(module).items()
        if inspect.isabstract(value) and value.__module__ == module.__name__
    )


class _SourceLoader(SourceFileLoader):
    """Without stored bytecode, which hides an edit within the same second that keeps the size."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise PluginError(f"cannot import {name}: {error!r}") from error


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise PluginError(f"no such file: {path}")
    # A prefix, so that a policy file called json.py does not replace Python's module.
    name = f"policy_file_{path.stem}"
    loader = _SourceLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except Exception as error:
        raise PluginError(f"{path} cannot be loaded: {error!r}") from error
    return module
