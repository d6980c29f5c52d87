"""What an experiment was said to show beforehand, judged by what it shows.

A claim holds when its whole 95 % interval (or every test) agrees, does not hold when all of it
disagrees, and otherwise cannot be said.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from services.lab.experiment import Claim
from services.lab.recovery import NEAR_PERCENT
from services.lab.report.data import Study
from services.lab.report.wording import listed, quantity, times
from services.lab.statistics import Estimate, PairedTest, estimate, ratio

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be said"

# By the pair's names, first against second, on total time.
Tests = dict[tuple[str, str], PairedTest]


@dataclass(frozen=True)
class Verdict:
    variant: str
    claim: str
    verdict: str
    found: str  # what was measured, in words

    @property
    def text(self) -> str:
        return f"Claimed: {self.claim}. This {self.verdict}: {self.found}."

    def to_json(self) -> dict[str, Any]:
        return {
            "variant": self.variant,
            "claim": self.claim,
            "verdict": self.verdict,
            "found": self.found,
        }


def judged(study: Study, variant: str, tests: Tests) -> list[Verdict]:
    """Every claim of the experiment in one variant."""
    return [_judge(study, variant, claim, tests) for claim in study.experiment.claims]


def _judge(study: Study, variant: str, claim: Claim, tests: Tests) -> Verdict:
    absent = sorted(set(claim.names) - set(study.schedulers(variant)))
    if absent:
        found = f"{listed(absent)} did not run"
        return Verdict(variant, _said(claim), OPEN, found)
    if claim.ratio is not None:
        verdict, found = _ratio(study, variant, claim, claim.ratio)
    elif claim.recovered is not None:
        verdict, found = _recovered(study, variant, claim.recovered, claim.within_tasks or 0)
    else:
        verdict, found = _order(claim.order or (), tests)
    return Verdict(variant, _said(claim), verdict, found)


def _said(claim: Claim) -> str:
    if claim.ratio is not None:
        first, second = claim.ratio
        goal = (
            f"at least {claim.at_least:g}"
            if claim.at_least is not None
            else f"at most {claim.at_most:g}"
        )
        return f"{first} takes {goal} times the total time of {second}"
    if claim.recovered is not None:
        near = f"within {NEAR_PERCENT} of the Oracle"
        return f"{claim.recovered} is back {near} after at most {claim.within_tasks} tasks"
    return f"from fastest to slowest {', '.join(claim.order or ())}"


def _ratio(study: Study, variant: str, claim: Claim, names: tuple[str, str]) -> tuple[str, str]:
    found = ratio(*(study.of(variant, name, "total_time") for name in names))
    if found is None:
        return OPEN, "there is no ratio"
    verdict, why = _within(found, claim.at_least, claim.at_most)
    return verdict, f"it takes {times(found)}{why}"


def _within(found: Estimate, least: float | None, most: float | None) -> tuple[str, str]:
    if found.low is None or found.high is None:
        return OPEN, " in the one seed there is"
    if (least is None or found.low >= least) and (most is None or found.high <= most):
        return HOLDS, ""
    if (least is not None and found.high < least) or (most is not None and found.low > most):
        return FAILS, ""
    return OPEN, ", and the interval reaches across"


def _recovered(study: Study, variant: str, name: str, goal: int) -> tuple[str, str]:
    after = [row["recovered_after"] for row in study.rows(variant, name)]
    known = [float(tasks) for tasks in after if tasks is not None]
    never = len(after) - len(known)
    mean = estimate(known)
    if mean is None:
        return FAILS, "in no seed it was"
    if never:
        return FAILS, f"in {never} of {len(after)} seeds it never was"
    verdict, why = _within(mean, None, float(goal))
    span = f"{min(known):.0f} to {max(known):.0f} by seed"
    return verdict, f"it took {quantity(mean)} tasks, {span}{why}"


def _order(names: tuple[str, ...], tests: Tests) -> tuple[str, str]:
    def test_of(first: str, second: str) -> tuple[float, bool] | None:
        """Ratio of the second to the first, and whether they are told apart."""
        if (first, second) in tests:
            test = tests[first, second]
            return 1 / test.ratio.mean, test.significant
        turned = tests.get((second, first))
        return None if turned is None else (turned.ratio.mean, turned.significant)

    found = {pair: test_of(*pair) for pair in combinations(names, 2)}
    turned = [
        f"{second} is faster than {first}"
        for (first, second), test in found.items()
        if test is not None and test[0] < 1 and test[1]
    ]
    if turned:
        return FAILS, "; ".join(turned)
    unclear = [
        f"{a} from {b}" for a, b in pairwise(names) if (test := found[a, b]) is None or not test[1]
    ]
    if unclear:
        return OPEN, f"the data do not tell {'; '.join(unclear)}"
    return HOLDS, "each is told from the next"
