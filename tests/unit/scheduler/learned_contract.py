"""The policy contract for a learned policy that has a model."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.scheduler.learned_policy import LearnedPolicy
from services.scheduler.policy import Policy
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from tests.unit.scheduler.policy_contract import PolicyContract


class WithModel(Policy):
    """A learned policy with its model, as a worker uses it."""

    def __init__(self, learned: LearnedPolicy, body: bytes) -> None:
        self.name = learned.name  # type: ignore[misc]
        self.__class__.__doc__ = type(learned).__doc__
        self._learned = learned
        self._model = learned.load_model(body)

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        return self._learned.decide_with(self._model, tasks, spec)


class LearnedContract(PolicyContract):
    @pytest.fixture
    def make_policy(self, spec: RunSpec) -> Callable[[], Policy]:
        return lambda: WithModel(self.learned(), self.model(spec.model_dump_json()))

    @staticmethod
    def learned() -> LearnedPolicy:
        raise NotImplementedError

    @staticmethod
    def model(spec: str) -> bytes:
        """A model for that run, the same on every call."""
        raise NotImplementedError
