"""What a learned policy owes the arena once it has a model: the contract of every policy."""

from __future__ import annotations

import pytest

from services.scheduler.learned import LearnedPolicy
from services.scheduler.policy import Policy
from shared.spec import RunSpec
from shared.tasks import Decisions, Tasks
from tests.unit.scheduler.policy_contract import PolicyContract


class WithModel(Policy):
    """A learned policy that has its model, as a worker has."""

    def __init__(self, learned: LearnedPolicy, body: bytes) -> None:
        self.name = learned.name  # type: ignore[misc]
        self.__class__.__doc__ = type(learned).__doc__
        self._learned = learned
        self._model = learned.open(body)

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        return self._learned.decide_with(self._model, tasks, spec)


class LearnedContract(PolicyContract):
    def made(self, spec: RunSpec) -> Policy:
        """Opened anew, as in another process."""
        return WithModel(self.learned(), self.body(spec.model_dump_json()))

    @pytest.fixture
    def policy(self, spec: RunSpec) -> Policy:
        return self.made(spec)

    @staticmethod
    def learned() -> LearnedPolicy:
        raise NotImplementedError

    @staticmethod
    def body(spec: str) -> bytes:
        """A model for that run, always the same one."""
        raise NotImplementedError
