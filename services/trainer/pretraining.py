"""The generated tasks that learners see before the first task of a run."""

from __future__ import annotations

from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.domain.workload import Cursor, generate

# Another seed than the run's, whose tasks must not be known in advance.
PRETRAIN_SEED = 0x5EED


def pretraining_tasks(spec: RunSpec) -> Tasks:
    """Tasks of the run's workload without its drift: a learner cannot know the changes to come."""
    workload = spec.workload.model_copy(update={"drift": ()})
    seed = (spec.seed + PRETRAIN_SEED) % 2**63
    other = spec.model_copy(update={"seed": seed, "workload": workload})
    tasks, _ = generate(other, Cursor(), max(spec.learning.pretrain_tasks, 100))
    return tasks
