"""Our total times beside those of a reference: figures that somebody else reported."""

from __future__ import annotations

from dataclasses import dataclass

from services.lab.reports.statistics import Estimate, estimate, ratio
from services.lab.reports.study import Study
from shared.domain.schedulers import ORACLE


@dataclass(frozen=True)
class ReferenceRow:
    ours: Estimate
    theirs: float
    ours_over_oracle: Estimate | None
    theirs_over_oracle: float | None
    our_rank: int
    their_rank: int


def compare_with_reference(study: Study, variant: str) -> dict[str, ReferenceRow]:
    """The schedulers that both have, in the reference's order; empty for fewer than two."""
    theirs = study.experiment.reference.total_time if study.experiment.reference else {}
    ours = {name: study.by_seed(variant, name, "total_time") for name in theirs}
    means = {name: mean for name, times in ours.items() if (mean := estimate([*times.values()]))}
    if len(means) < 2:
        return {}
    our_order = sorted(means, key=lambda name: (means[name].mean, name))
    return {
        name: ReferenceRow(
            means[name],
            theirs[name],
            ratio(ours[name], ours.get(ORACLE, {})),
            theirs[name] / theirs[ORACLE] if theirs.get(ORACLE) else None,
            our_order.index(name) + 1,
            rank,
        )
        for rank, name in enumerate(sorted(means, key=lambda name: (theirs[name], name)), start=1)
    }
