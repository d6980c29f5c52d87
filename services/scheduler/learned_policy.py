"""The contract of policies that decide with a model."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from services.scheduler.policy import ClusterPolicy
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks


class LearnedClusterPolicy(ClusterPolicy):
    """Computes what it needs of the model in `prepare_with`; `prepare` is used until the first
    model arrives.

    One that looks at the tasks alone returns complete `Decisions` from both.
    """

    learner: ClassVar[str]
    frozen: ClassVar[bool] = False  # keep the first model, for comparisons

    @abstractmethod
    def load_model(self, body: bytes) -> Any:
        """Raise if the model is not usable. Must not run code that comes with the model."""

    @abstractmethod
    def prepare_with(self, model: Any, tasks: Tasks, spec: RunSpec) -> Any:
        """What `decide` finds as `cluster.prepared`, or complete `Decisions`; see `prepare`."""
