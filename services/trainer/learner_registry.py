"""The learners of this arena: the built-in ones, and those of users' plug-ins."""

from __future__ import annotations

from services.trainer.learner import Learner
from shared.domain.schedulers import LEARNERS, check_scheduler_name
from shared.runtime.logs import logger
from shared.runtime.plugins import (
    LEARNER_GROUP,
    POLICY_GROUP,
    PluginError,
    classes_in,
    entry_points,
    load_module,
)

log = logger()


def load_learners(plugins: str) -> dict[str, type[Learner]]:
    """By the name of their scheduler. `plugins` are references to policies, comma-separated; most
    of them have no learner. Installed packages offer theirs as entry points. One that cannot be
    loaded must not stop the others."""
    learners: dict[str, type[Learner]] = {}
    for name in LEARNERS:
        module = load_module(f"services.trainer.learners.{name}")
        learners |= {each.name: each for each in classes_in(module, Learner)}
    for reference in _references(plugins):
        location, _, class_name = reference.partition(":")
        try:
            found = classes_in(load_module(location), Learner, class_name)
            names = [_free_name(getattr(each, "name", "")) for each in found]
        except (PluginError, ValueError) as error:
            log.warning("a plug-in is left out", plugin=reference, error=str(error))
            continue
        learners |= dict(zip(names, found, strict=True))
    return learners


def _free_name(name: str) -> str:
    if name in LEARNERS:
        raise ValueError(f"{name} is a built-in scheduler with a learner of its own")
    return check_scheduler_name(name)


def _references(plugins: str) -> list[str]:
    """Modules, or classes of modules, that may have learners."""
    installed = entry_points(POLICY_GROUP)
    # A policy's class is beside its learner; a network in a file has none.
    modules = [
        installed.get(each, each).partition(":")[0]
        for each in plugins.split(",")
        if each and not each.endswith(".onnx")
    ]
    return [*dict.fromkeys(modules), *entry_points(LEARNER_GROUP).values()]
