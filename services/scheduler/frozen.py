"""The forest as it was before the first task, for contrast: deploy it with
`hybrid up --add services.scheduler.frozen:FrozenForest`."""

from services.scheduler.policies.hybrid_ml import HybridMl


class FrozenForest(HybridMl):
    """`hybrid_ml` without retraining: its first model for ever.

    Shows what retraining is worth when the workload changes.
    """

    name = "frozen_forest"
    frozen = True
