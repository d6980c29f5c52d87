"""Our total times beside those that somebody else reported."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from services.lab.experiment import Reference
from services.lab.report.data import ORACLE, Study
from services.lab.report.wording import listed, number
from services.lab.statistics import Estimate, estimate, ratio


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

    @property
    def holds(self) -> bool:
        return not self.swapped

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "order_holds": self.holds,
            "swapped": [list(pair) for pair in self.swapped],
            "missing": self.missing,
            "schedulers": {
                row.scheduler: {
                    "ours": row.ours.to_json(),
                    "theirs": row.theirs,
                    "ours_over_oracle": row.ours_over_oracle and row.ours_over_oracle.to_json(),
                    "theirs_over_oracle": row.theirs_over_oracle,
                    "our_rank": row.our_rank,
                    "their_rank": row.their_rank,
                }
                for row in self.rows
            },
        }


def against_reference(
    reference: Reference | None, study: Study, variant: str
) -> ReferenceComparison | None:
    """Nothing without a reference, or when fewer than two schedulers are in both."""
    if reference is None:
        return None
    ours = {name: study.of(variant, name, "total_time") for name in reference.total_time}
    means = {
        name: found for name, values in ours.items() if (found := estimate([*values.values()]))
    }
    if len(means) < 2:
        return None
    theirs = reference.total_time
    their_order = sorted(means, key=lambda name: (theirs[name], name))
    our_order = sorted(means, key=lambda name: (means[name].mean, name))
    floor = theirs.get(ORACLE)
    rows = [
        ReferenceRow(
            name,
            means[name],
            theirs[name],
            ratio(ours[name], ours.get(ORACLE, {})),
            theirs[name] / floor if floor else None,
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
    missing = sorted(set(theirs) - set(means))
    return ReferenceComparison(reference.source, rows, swapped, missing)


def beside(compared: ReferenceComparison) -> list[str]:
    """Whose multiple of the Oracle is higher here than there, interval and all."""
    sides: dict[str, list[str]] = {"higher": [], "lower": [], "not told from theirs": []}
    for row in compared.rows:
        ours, theirs = row.ours_over_oracle, row.theirs_over_oracle
        if row.scheduler == ORACLE or ours is None or theirs is None:
            continue
        if ours.low is not None and ours.low > theirs:
            sides["higher"].append(row.scheduler)
        elif ours.high is not None and ours.high < theirs:
            sides["lower"].append(row.scheduler)
        else:
            sides["not told from theirs"].append(row.scheduler)
    parts = [f"{side} for {listed(names)}" for side, names in sides.items() if names]
    if not parts:
        return []
    return [f"Beside the reference our multiples of the Oracle are {'; '.join(parts)}."]


def gpu_over_cpu(study: Study, variant: str) -> list[str]:
    """What sending a judged task to a GPU costs over the CPU."""
    rows = study.select("workload", variant, judged=True)
    if len(rows["cpu_time"]) == 0 or not (rows["cpu_time"] > 0).all():
        return []
    middle = float(np.median(rows["gpu_time"] / rows["cpu_time"]))
    return [
        f"A whole judged task takes {number(middle)} times as long on a GPU as on the CPU, "
        "transfer included (median of the sampled tasks)."
    ]
