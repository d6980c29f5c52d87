"""Finds the learners: the built-in ones, those of plug-ins and those of installed packages."""

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
    fingerprint,
    load_module,
)

log = logger()


class LearnerRegistry:
    """Learners by the name of their scheduler.

    `plugins` are references to policies, comma-separated; most of them have no learner. Installed
    packages offer theirs as entry points. One that cannot be loaded must not stop the others.
    """

    def __init__(self, plugins: str) -> None:
        self.learners: dict[str, type[Learner]] = {}
        for name in LEARNERS:
            module = load_module(f"services.trainer.learners.{name}")
            self.learners |= {each.name: each for each in classes_in(module, Learner)}
        self._fingerprints = {each: fingerprint(each) for each in _references(plugins)}
        for reference in self._fingerprints:
            self.learners |= _learners_in(reference)

    def load_changed(self) -> None:
        """Load the files of plug-ins again that have changed, for the next run. A new learner needs
        a restart: the trainer has not subscribed to its results."""
        for reference, before in self._fingerprints.items():
            now = fingerprint(reference)
            if now == before:
                continue
            self._fingerprints[reference] = now
            for name, learner in _learners_in(reference).items():
                known = self.learners.get(name)
                if known is None or known.learns_from != learner.learns_from:
                    log.warning("a learner has changed its kind: restart the trainer", name=name)
                else:
                    self.learners[name] = learner


def _learners_in(reference: str) -> dict[str, type[Learner]]:
    location, _, class_name = reference.partition(":")
    try:
        learners = classes_in(load_module(location), Learner, class_name)
        return {_free_name(getattr(each, "name", "")): each for each in learners}
    except (PluginError, ValueError) as error:
        log.warning("a plug-in is left out", plugin=reference, error=str(error))
        return {}


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
