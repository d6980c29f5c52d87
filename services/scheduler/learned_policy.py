"""The contract of a policy that decides with a model."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from services.scheduler.policy import Policy
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks


class LearnedPolicy(Policy):
    """Subclasses name their learner, and say how to load its models and decide with them."""

    learner: ClassVar[str]
    frozen: ClassVar[bool] = False  # keep the first model, for comparisons

    @abstractmethod
    def load_model(self, body: bytes) -> Any:
        """Raise if the model is not usable. Must not run code that comes with the model."""

    @abstractmethod
    def decide_with(self, model: Any, tasks: Tasks, spec: RunSpec) -> Decisions:
        """One decision per task."""

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        """Before the first model: the rule of `greedy`."""
        return Decisions(gpu_fraction=tasks.compute_intensity)
