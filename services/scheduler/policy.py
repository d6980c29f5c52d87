"""The contract of a scheduling policy, and how one is found.

To add a scheduler: subclass `Policy` in a file of your own, give it a name and `decide`, and
deploy a worker with `HYBRID_POLICY` set to that file. A batch is decided at once, with numpy.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import numpy as np

from services.scheduler import policies
from shared.errors import ArenaError
from shared.spec import RunSpec, check_scheduler_name
from shared.tasks import Decisions, Tasks


class PolicyError(ArenaError):
    """A policy that cannot be loaded, or that decided nonsense."""


class Policy(ABC):
    """Decides which share of each task runs on a GPU, and on which.

    Replicas of a worker must agree: decide from the tasks, the spec and its seed alone, never from
    what this process saw before or from a random generator of its own.
    """

    name: ClassVar[str]

    @abstractmethod
    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        """One decision per task. Without `gpu` the GPUs are taken in rotation by task id."""


def check(decisions: Decisions, tasks: Tasks, spec: RunSpec, name: str) -> Decisions:
    """A policy's answer, or a PolicyError that says what is wrong with it."""
    share = np.asarray(decisions.gpu_fraction, dtype=np.float64)
    if share.shape != (len(tasks),):
        raise PolicyError(f"{name}: gpu_fraction has shape {share.shape} for {len(tasks)} tasks")
    if not ((share >= 0) & (share <= 1)).all():
        bad = share[~((share >= 0) & (share <= 1))][0]
        raise PolicyError(f"{name}: gpu_fraction must be 0..1, got {bad}")
    if decisions.gpu is not None:
        gpu = np.asarray(decisions.gpu)
        if gpu.shape != (len(tasks),):
            raise PolicyError(f"{name}: gpu has shape {gpu.shape} for {len(tasks)} tasks")
        if not ((gpu >= 0) & (gpu < spec.cluster.gpus)).all():
            raise PolicyError(f"{name}: gpu must be 0..{spec.cluster.gpus - 1}")
    return decisions


def built_in() -> list[str]:
    """Names of the policies that come with the arena: one per file in `policies/`."""
    folder = Path(inspect.getfile(policies)).parent
    return sorted(file.stem for file in folder.glob("*.py") if not file.stem.startswith("_"))


def load(reference: str) -> Policy:
    """Find a policy: a built-in name, `package.module:Class`, or `path/to/file.py[:Class]`."""
    if not reference:
        raise PolicyError(
            f"no policy given: set HYBRID_POLICY to one of {', '.join(built_in())}, "
            "to package.module:Class, or to a file.py"
        )
    where, _, wanted = reference.partition(":")
    if where.endswith(".py"):
        module = _load_file(Path(where))
    elif "." in where or wanted:
        module = _import(where)
    elif where in built_in():
        module = _import(f"{policies.__name__}.{where}")
    else:
        raise PolicyError(f"no policy {where!r}; built in: {', '.join(built_in())}")
    found = [
        thing
        for thing in vars(module).values()
        if inspect.isclass(thing)
        and issubclass(thing, Policy)
        and not inspect.isabstract(thing)
        and (thing.__name__ == wanted if wanted else thing.__module__ == module.__name__)
    ]
    if len(found) != 1:
        names = ", ".join(cls.__name__ for cls in found) or "none"
        raise PolicyError(f"{reference}: one Policy class expected, found: {names}")
    try:
        check_scheduler_name(getattr(found[0], "name", ""))
    except ValueError as error:
        raise PolicyError(f"{reference}: {error}; set the class attribute `name`") from None
    try:
        policy: Policy = found[0]()
    except Exception as error:
        raise PolicyError(f"{reference}: {found[0].__name__}() failed: {error!r}") from error
    return policy


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise PolicyError(f"cannot import {name}: {error!r}") from error


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise PolicyError(f"no such file: {path}")
    # A name of its own: somebody's json.py must not take the place of Python's.
    name = f"policy_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise PolicyError(f"{path} cannot be loaded: {error!r}") from error
    return module
