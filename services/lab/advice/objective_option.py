"""`turnaround=1,cost=0.2` as the objective of a run."""

from __future__ import annotations

from shared.domain.spec_parts.learning_spec import Objective
from shared.errors import SpecError


def parse_objective(text: str) -> dict[str, float]:
    """Unnamed weights are 0; turnaround has to be above 0, or jobs might wait for ever."""
    known = Objective.model_fields
    weights = {"turnaround": 0.0}
    for part in text.split(","):
        name, _, weight = (each.strip() for each in part.partition("="))
        try:
            if name not in known:
                raise ValueError
            weights[name] = float(weight)
        except ValueError:
            raise SpecError(
                [f"objective {part.strip()!r}: write NAME=WEIGHT with {', '.join(known)}"]
            ) from None
    return weights
