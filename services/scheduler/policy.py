"""The two contracts of scheduling policies, and how a policy is loaded.

To add a scheduler, subclass `Policy` or `ClusterPolicy` in a file of your own, give it a name and
`decide`, and deploy a worker with `HYBRID_POLICY` set to that file. A package can offer its
policies as entry points of the group `hybrid.policies`; where it is installed, names are enough.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.hardware.platform import Platform
from shared.domain.schedulers import BUILT_IN, check_scheduler_name
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.errors import ArenaError
from shared.runtime.plugins import (
    POLICY_GROUP,
    PluginError,
    classes_in,
    entry_points,
    load_module,
    missing_methods,
)


class PolicyError(ArenaError):
    """A policy cannot be loaded, or returned invalid decisions."""


class Policy(ABC):
    """Decides from the tasks alone which share of each runs on an accelerator, on which one, and on
    which CPU of the same node the rest runs. A batch is decided at once, with numpy.

    Replicas must agree, so a decision may depend on the tasks, the spec and its seed alone: not on
    earlier batches, and not on a random generator of the process.
    """

    name: ClassVar[str]
    # Set by reference policies only. Others see the spec without noise.
    knows_real_times: ClassVar[bool] = False

    @abstractmethod
    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        """One decision per task. Without `device`, the accelerators are used in rotation by task
        id; without `cpu`, the CPUs of the accelerator's node."""


class ClusterPolicy(ABC):
    """Places one task after the other and sees the queues of its own cluster while it does.

    Replicas must agree, so a decision may depend on the tasks, the cluster, the spec and its seed
    alone. The batches of a run are placed in order; what `prepare` computes beforehand is computed
    for several batches at once if there are several workers.
    """

    name: ClassVar[str]
    knows_real_times: ClassVar[bool] = False  # see `Policy.knows_real_times`

    def prepare(self, tasks: Tasks, spec: RunSpec) -> Any:
        """What can be computed without the cluster; `decide` finds it as `cluster.prepared`.

        `Decisions`: in this run, all is decided without the cluster. They are published as they
        are, as a `Policy`'s, and `decide` is not called."""
        return None

    @abstractmethod
    def decide(self, tasks: Tasks, cluster: ClusterView, spec: RunSpec) -> Decisions:
        """Place every task of `cluster.arrivals()`, then return `cluster.decisions()`."""


AnyPolicy = Policy | ClusterPolicy


def visible_spec(spec: RunSpec, policy: AnyPolicy) -> RunSpec:
    """The spec as a policy may see it: noise would reveal the real times."""
    return spec if policy.knows_real_times else spec.without_noise


def check(decisions: Decisions, tasks: Tasks, spec: RunSpec, name: str) -> Decisions:
    """Return the decisions if they are valid, else raise a PolicyError that says why."""
    share = np.asarray(decisions.gpu_fraction, dtype=np.float64)
    if share.shape != (len(tasks),):
        raise PolicyError(f"{name}: gpu_fraction has shape {share.shape} for {len(tasks)} tasks")
    if not ((share >= 0) & (share <= 1)).all():
        bad = share[~((share >= 0) & (share <= 1))][0]
        raise PolicyError(f"{name}: gpu_fraction must be 0..1, got {bad}")
    _check_devices("device", decisions.device, spec.platform, tasks, name)
    _check_devices("cpu", decisions.cpu, spec.platform, tasks, name)
    return decisions


def _check_devices(
    field: str, chosen: object, platform: Platform, tasks: Tasks, policy: str
) -> None:
    if chosen is None:
        return
    numbers = np.asarray(chosen)
    if numbers.shape != (len(tasks),):
        raise PolicyError(f"{policy}: {field} has shape {numbers.shape} for {len(tasks)} tasks")
    accelerator = field == "device"
    wrong = platform.misnamed(numbers, accelerator=accelerator)
    if wrong.any():
        kind = "an accelerator" if accelerator else "a CPU"
        allowed = platform.accelerators if accelerator else platform.cpus
        raise PolicyError(
            f"{policy}: {field} must be the number of {kind} ({allowed[0]}..{allowed[-1]})"
            if len(allowed)
            else f"{policy}: {field} {numbers[wrong][0]}: the cluster has no such devices"
        )


def check_placed(decisions: Decisions, cluster: ClusterView, name: str) -> Decisions:
    """Return the decisions if they are what the policy placed."""
    placed = cluster.decisions()
    for field in ("gpu_fraction", "device", "cpu", "expected_time", "order"):
        if not _are_equal(getattr(decisions, field, None), getattr(placed, field)):
            raise PolicyError(f"{name}: return cluster.decisions(); {field} is not as placed")
    return decisions


def _are_equal(one: Any, other: Any) -> bool:
    return one is other or bool(np.array_equal(one, other))


def load(reference: str) -> AnyPolicy:
    """Load a policy: the name of a built-in or an installed one, `package.module:Class`,
    `path/to/file.py[:Class]`, or a network in `path/to/file.onnx`."""
    names = ", ".join(sorted(BUILT_IN))
    if not reference:
        raise PolicyError(
            f"no policy given: set HYBRID_POLICY to one of {names}, "
            "to package.module:Class, or to a file.py or file.onnx"
        )
    if reference.endswith(".onnx"):
        from services.scheduler.onnx_policy import load_onnx  # it needs this module

        return load_onnx(Path(reference))
    location, _, class_name = reference.partition(":")
    if location in BUILT_IN and not class_name:
        location = f"services.scheduler.policies.{location}"
    elif not (location.endswith(".py") or "." in location or class_name):
        installed = entry_points(POLICY_GROUP)
        if location not in installed:
            raise PolicyError(f"no policy {location!r}; built in: {names}{_listed(installed)}")
        location, _, class_name = installed[location].partition(":")
    try:
        module = load_module(location)
    except PluginError as error:
        raise PolicyError(str(error)) from error
    return _create(_policy_class(module, class_name, reference), reference)


def _listed(names: Collection[str]) -> str:
    return f"; installed: {', '.join(sorted(names))}" if names else ""


def _policy_class(module: ModuleType, class_name: str, reference: str) -> type[AnyPolicy]:
    """The class of that name, or the only policy that the module defines itself."""
    candidates: list[type[AnyPolicy]] = [
        *classes_in(module, Policy, class_name),
        *classes_in(module, ClusterPolicy, class_name),
    ]
    if len(candidates) != 1:
        names = ", ".join(candidate.__name__ for candidate in candidates) or "none"
        raise PolicyError(
            f"{reference}: one Policy or ClusterPolicy class expected, found: {names}"
            f"{missing_methods(module)}"
        )
    return candidates[0]


def _create(policy_class: type[AnyPolicy], reference: str) -> AnyPolicy:
    try:
        check_scheduler_name(getattr(policy_class, "name", ""))
    except ValueError as error:
        raise PolicyError(f"{reference}: {error}; set the class attribute `name`") from None
    try:
        return policy_class()
    except Exception as error:
        raise PolicyError(f"{reference}: {policy_class.__name__}() failed: {error!r}") from error
