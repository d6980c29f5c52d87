"""The rule of the README's tutorial as a baseline of experiments, with the same bits on every CPU.

Not built in: `hybrid up --add services.scheduler.transfer_aware:TransferAware` deploys it.
"""

from __future__ import annotations

import numpy as np

from services.scheduler.policy import Policy
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks


class TransferAware(Policy):
    """A GPU for tasks whose computing is worth the transfer of their data, the CPU for the rest.

    Two lines without a model: what a forest that imitates the Oracle has to beat.
    """

    name = "transfer_aware"

    def decide(self, tasks: Tasks, spec: RunSpec) -> Decisions:
        physics = spec.physics
        transfer = tasks.memory_required / physics.bandwidth_mb_s
        # As many seconds as a task of intensity 0.5 takes on the CPU.
        units = tasks.size / physics.size_unit
        work = units * np.sqrt(units)  # ** 1.5 may differ in the last bit between CPUs
        return Decisions(gpu_fraction=np.where(work > 2 * transfer, 1.0, 0.0))
