"""The learners of this arena: the built-in ones, and those of users' plug-ins."""

from __future__ import annotations

from services.trainer.learner import Learner
from shared.domain.schedulers import LEARNERS, check_scheduler_name
from shared.runtime.logs import logger
from shared.runtime.plugins import PluginError, classes_in, load_module

log = logger()


def load_learners(plugins: str) -> dict[str, type[Learner]]:
    """By the name of their scheduler. `plugins` are references to policies, comma-separated; most
    of them have no learner. One that cannot be loaded must not stop the others."""
    learners: dict[str, type[Learner]] = {}
    for name in LEARNERS:
        module = load_module(f"services.trainer.learners.{name}")
        learners |= {each.name: each for each in classes_in(module, Learner)}
    for reference in filter(None, plugins.split(",")):
        location = reference.partition(":")[0]
        try:
            found = classes_in(load_module(location), Learner)
            names = [check_scheduler_name(getattr(each, "name", "")) for each in found]
        except (PluginError, ValueError) as error:
            log.warning("a plug-in is left out", plugin=reference, error=str(error))
            continue
        learners |= dict(zip(names, found, strict=True))
    return learners
