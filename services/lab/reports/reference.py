"""Our total times beside those of a reference: figures that somebody else reported."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from services.lab.reports.statistics import Estimate, estimate, ratio
from services.lab.reports.study import Study
from shared.domain.schedulers import ORACLE


@dataclass(frozen=True)
class ReferenceRow:
    scheduler: str
    ours: Estimate
    theirs: float
    ours_over_oracle: Estimate | None
    theirs_over_oracle: float | None
    our_rank: int
    their_rank: int


@dataclass(frozen=True)
class ReferenceComparison:
    """The schedulers that both have, in the reference's order."""

    source: str
    rows: list[ReferenceRow]
    swapped: list[tuple[str, str]]  # the reference has the first one faster, we the second
    missing: list[str]  # in the reference, not in our runs

    def to_json(self) -> dict[str, Any]:
        rows = [asdict(row) for row in self.rows]
        return {
            "source": self.source,
            "order_holds": not self.swapped,
            "swapped": [list(pair) for pair in self.swapped],
            "missing": self.missing,
            "schedulers": {row.pop("scheduler"): row for row in rows},
        }


def compare_with_reference(study: Study, variant: str) -> ReferenceComparison | None:
    """None without a reference, or when fewer than two schedulers are in both."""
    reference = study.experiment.reference
    if reference is None:
        return None
    theirs = reference.total_time
    ours = {name: study.by_seed(variant, name, "total_time") for name in theirs}
    means = {name: mean for name, times in ours.items() if (mean := estimate([*times.values()]))}
    if len(means) < 2:
        return None
    their_order = sorted(means, key=lambda name: (theirs[name], name))
    our_order = sorted(means, key=lambda name: (means[name].mean, name))
    their_oracle = theirs.get(ORACLE)
    rows = [
        ReferenceRow(
            name,
            means[name],
            theirs[name],
            ratio(ours[name], ours.get(ORACLE, {})),
            theirs[name] / their_oracle if their_oracle else None,
            our_order.index(name) + 1,
            their_order.index(name) + 1,
        )
        for name in their_order
    ]
    swapped = [
        (first, second)
        for first, second in combinations(their_order, 2)
        if theirs[first] < theirs[second] and means[first].mean > means[second].mean
    ]
    return ReferenceComparison(reference.source, rows, swapped, sorted(set(theirs) - set(means)))
