"""Not built in: `hybrid up --add services.scheduler.frozen_forest:FrozenForest` deploys it."""

from services.scheduler.policies.hybrid_ml import HybridMl


class FrozenForest(HybridMl):
    """`hybrid_ml` without retraining: it keeps its first model.

    The difference to `hybrid_ml` is what retraining gains when the workload changes.
    """

    name = "frozen_forest"
    frozen = True
