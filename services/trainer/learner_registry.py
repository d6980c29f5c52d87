"""The learners of this arena: the built-in ones, and those of users' plug-ins."""

from __future__ import annotations

from services.trainer.learner import Learner
from shared.domain.schedulers import LEARNERS, check_scheduler_name
from shared.runtime.logs import logger
from shared.runtime.plugins import PluginError, classes_in, fingerprint, load_module

log = logger()


class LearnerRegistry:
    """Learners by the name of their scheduler.

    `plugins` are references to policies, comma-separated; most of them have no learner. One that
    cannot be loaded must not stop the others.
    """

    def __init__(self, plugins: str) -> None:
        self.learners: dict[str, type[Learner]] = {}
        for name in LEARNERS:
            module = load_module(f"services.trainer.learners.{name}")
            self.learners |= {each.name: each for each in classes_in(module, Learner)}
        self._fingerprints = {each: fingerprint(each) for each in plugins.split(",") if each}
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
    try:
        found = classes_in(load_module(reference.partition(":")[0]), Learner)
        return {check_scheduler_name(getattr(each, "name", "")): each for each in found}
    except (PluginError, ValueError) as error:
        log.warning("a plug-in is left out", plugin=reference, error=str(error))
        return {}
