"""A scheduler that is slow on purpose, to see what more workers bring."""

from __future__ import annotations

import time

import numpy as np

from services.scheduler.policy import Policy
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks

TASK_SECONDS = 0.0005


class Slow(Policy):
    """All on the CPU, after a pause."""

    name = "slow"

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        time.sleep(TASK_SECONDS * len(tasks))
        return Decisions(gpu_fraction=np.zeros(len(tasks)))
