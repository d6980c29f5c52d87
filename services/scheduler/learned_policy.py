"""The contracts of policies that decide with a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from services.scheduler.policy import ClusterPolicy, Policy
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks


class Learned(ABC):
    """Names its learner, and says how to load its models."""

    learner: ClassVar[str]
    frozen: ClassVar[bool] = False  # keep the first model, for comparisons

    @abstractmethod
    def load_model(self, body: bytes) -> Any:
        """Raise if the model is not usable. Must not run code that comes with the model."""


class LearnedPolicy(Learned, Policy):
    """Decides from the tasks alone."""

    @abstractmethod
    def decide_with(self, model: Any, tasks: Tasks, spec: RunSpec) -> Decisions:
        """One decision per task."""

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        """Before the first model: the rule of `greedy`."""
        return Decisions(gpu_fraction=tasks.compute_intensity)


class LearnedClusterPolicy(Learned, ClusterPolicy):
    """Computes what it needs of the model in `prepare_with`; `prepare` is for before the first."""

    @abstractmethod
    def prepare_with(self, model: Any, tasks: Tasks, spec: RunSpec) -> Any:
        """What `decide` finds as `cluster.prepared`, or complete `Decisions`; see `prepare`."""
