"""The answer in the user's units: what was measured, as figures with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from services.lab.advice.jobs import Jobs
from services.lab.advice.measurement import CaseResult, Measured
from services.lab.advice.samples import Samples
from services.lab.advice.verdict import INDIFFERENT, Verdict, difference, judge
from services.lab.reports.statistics import Estimate, estimate, ratio
from shared.domain.hardware.certificate import NO_CERTIFICATE
from shared.domain.learning.objective import JOULES_PER_KWH
from shared.domain.schedulers import CLAIRVOYANT, ORACLE
from shared.domain.spec import RunSpec

MONTH_S = 30 * 86_400
# A choice among more is no answer.
FEW = 3
# Other objectives that a user may have.
OBJECTIVES = {
    "turnaround alone": {"turnaround": 1.0},
    "mostly energy": {"turnaround": 0.1, "energy": 1.0},
    "mostly money": {"turnaround": 0.1, "cost": 1.0},
}


@dataclass(frozen=True, slots=True)
class Loss:
    """What a scheduler costs more than the recommended one; negative: less."""

    scheduler: str
    wait_s: Estimate | None  # seconds of waiting per task
    wait_hours_a_month: Estimate | None
    kwh_a_month: Estimate | None
    dollars_a_month: Estimate | None


@dataclass(frozen=True, slots=True)
class Changed:
    """The answer to a changed question."""

    change: str
    best: str
    changes: bool | None  # whether another one is best; None: not decided
    ratio: Estimate | None  # the recommended one's objective over the best one's
    units: int


@dataclass(frozen=True, slots=True)
class Bound:
    makespan: Estimate | None  # over the least that any schedule could have
    turnaround: Estimate | None  # over the execution times of the Oracle: no queue at all
    clairvoyant: Estimate | None  # turnaround over earliest finish that knows the real times


@dataclass(frozen=True, slots=True)
class Answer:
    jobs: str
    platform: str
    objective: dict[str, float]
    load: float | None
    unit: str  # of comparison: seed, or stretch
    tasks: int
    tasks_a_month: float
    verdict: Verdict | None
    wait_s: Estimate | None  # of the recommended one
    losses: list[Loss]
    bound: Bound | None
    changed: list[Changed]
    not_tried: list[str]
    rests_on: list[str]
    failed: dict[str, int]
    runs: list[str]
    seconds: float
    seconds_per_run: float
    ended_by: str

    @property
    def units(self) -> str:
        return "seeds" if self.unit == "seed" else "stretches of the trace"

    @property
    def units_short(self) -> str:
        return "Seeds" if self.unit == "seed" else "Stretches"


def make_answer(jobs: Jobs, measured: Measured, platform: str, remarks: list[str]) -> Answer:
    """`seen`: what was noticed about the files, such as skipped lines."""
    samples, verdict = measured.samples, measured.verdict
    spec = samples.spec
    per_month = MONTH_S * jobs.tasks / samples.span_s if samples.span_s else 0.0
    recommended = verdict.recommended if verdict else None
    return Answer(
        jobs=jobs.description,
        platform=platform,
        objective=spec.objective.model_dump(),
        load=jobs.load,
        unit="seed" if samples.by_unit else "stretch",
        tasks=jobs.tasks,
        tasks_a_month=per_month,
        verdict=verdict,
        wait_s=estimate([*samples.of(recommended, "wait").values()]) if recommended else None,
        losses=_losses(samples, verdict, per_month) if verdict else [],
        bound=_bound(samples, recommended) if recommended else None,
        changed=_changed(samples, verdict, measured.cases) if verdict else [],
        not_tried=[case.label for case in measured.not_tried],
        rests_on=[*_foundations(spec, jobs), *remarks],
        failed={name: count for name, count in samples.failed.items() if count},
        runs=samples.runs + [run for each in measured.cases for run in each.samples.runs],
        seconds=measured.seconds,
        seconds_per_run=measured.seconds_per_run,
        ended_by=measured.ended_by,
    )


def _losses(samples: Samples, verdict: Verdict, per_month: float) -> list[Loss]:
    def loss(name: str, figure: str, scale: float) -> Estimate | None:
        own, best = samples.of(name, figure), samples.of(verdict.recommended, figure)
        return difference(own, best, scale, verdict.confidence)

    return [
        Loss(
            each.scheduler,
            loss(each.scheduler, "wait", 1.0),
            loss(each.scheduler, "wait", per_month / 3600),
            loss(each.scheduler, "energy", per_month / JOULES_PER_KWH),
            loss(each.scheduler, "cost", per_month),
        )
        for each in verdict.compared
        if each.scheduler != verdict.recommended
    ]


def _bound(samples: Samples, name: str) -> Bound:
    known = samples.values
    turnaround = samples.of(name, "turnaround")
    return Bound(
        makespan=estimate(samples.over_bound.get(name, [])),
        turnaround=ratio(turnaround, samples.of(ORACLE, "time")) if ORACLE in known else None,
        clairvoyant=(
            ratio(turnaround, samples.of(CLAIRVOYANT, "turnaround"))
            if CLAIRVOYANT in known
            else None
        ),
    )


def _changed(samples: Samples, verdict: Verdict, cases: list[CaseResult]) -> list[Changed]:
    changed = [
        _compared(each.case.label, each.verdict, each.samples, verdict.recommended)
        for each in cases
    ]
    objective = samples.spec.objective.model_dump()
    for label, weights in OBJECTIVES.items():
        spec = RunSpec.parse(samples.spec.model_dump(mode="json") | {"objective": weights})
        if spec.objective.model_dump() == objective:
            continue
        values = {name: samples.objective(name, spec) for name in samples.competitors}
        changed.append(_compared(label, judge(values), samples, verdict.recommended, spec))
    return changed


def _compared(
    label: str, verdict: Verdict, samples: Samples, recommended: str, spec: RunSpec | None = None
) -> Changed:
    """Whether the recommended one is still best, or as good."""
    spec = spec or samples.spec
    best = verdict.best
    own, other = samples.objective(recommended, spec), samples.objective(best, spec)
    standing = verdict.of(recommended).standing
    changes = {
        "best": False, "equal": False, "worse": True, "not better": None, "unknown": None,
    }[standing]  # fmt: skip
    return Changed(label, best, changes, ratio(own, other) if best != recommended else None,
                   verdict.units)  # fmt: skip


def _foundations(spec: RunSpec, jobs: Jobs) -> list[str]:
    """What the answer rests on."""
    physics, platform = spec.physics, spec.platform
    devices = ", ".join(f"{each.count} × {each.name}" for each in platform.types)
    times = (
        "Task times are measured: the platform's tables"
        if platform.measured is not None
        else "Task times are assumed: our formula of size, intensity and memory, not measurements"
    )
    certificate = spec.certificate.line if spec.certificate else NO_CERTIFICATE
    noise = {0.0: "none, every job takes as long as expected", "measured": "as measured"}
    noise_text = noise.get(
        physics.noise, f"{physics.noise:.0%}" if physics.noise != "measured" else ""
    )
    prices = "cloud prices" if physics.cost_model == "cloud" else "prices of electricity"
    return [
        f"Machines: {devices}.",
        f"{times}.",
        f"Certificate of the platform: {certificate}.",
        f"Noise of task times: {noise_text}.",
        f"Dollars are {prices} while a device works; energy is that of working devices.",
        f"Jobs: {jobs.description}.",
    ]


def undecided_note(answer: Answer) -> str:
    """What the user can do for a decision."""
    verdict = answer.verdict
    if verdict is None:
        return (
            f"One run takes about {answer.seconds_per_run:.0f} s and at least two {answer.units} "
            "are needed: give a larger --budget, or fewer --tasks."
        )
    needed = [verdict.of(name).units_needed for name in verdict.named("unknown")]
    if not all(needed):
        return (
            "Too few units to estimate how many a decision needs: give a longer trace, or a larger "
            "--budget."
        )
    units = int(np.max([each or 0 for each in needed]))
    if answer.unit == "seed":
        seconds = (units - verdict.units) * answer.seconds_per_run
        return (
            f"A decision needs about {units} seeds ({verdict.units} were run): allow about "
            f"{max(seconds, 60) / 60:.0f} more minutes (--budget)."
        )
    return (
        f"A decision needs a trace that is about {units / verdict.units:.1f} times as long: more "
        "replays of the same jobs cannot show what other jobs would do."
    )


def headline(answer: Answer) -> str:
    if answer.verdict is None:
        return "The time budget was too short for an answer."
    return recommendation(answer.verdict)


def recommendation(verdict: Verdict) -> str:
    equal = [n for n in [verdict.best, *verdict.named("equal")] if n != verdict.recommended]
    as_well = "as well" if verdict.decided else f"as well as {verdict.recommended}"
    as_good = f"; {', '.join(equal)} would do {as_well} (within {INDIFFERENT:.0%})" if equal else ""
    if verdict.decided:
        close = verdict.named("not better")
        behind = f"; {', '.join(close)} may be equal or worse, but hardly better" if close else ""
        return f"Use {verdict.recommended}{as_good}{behind}."
    candidates, following = to_use(verdict), verdict.next_worse
    if not candidates or following is None:
        return (
            f"The data do not show which of {', '.join(_unclear(verdict))} is best{as_good}; "
            f"{verdict.best} had the smallest mean."
        )
    beside = following.ratio
    assert beside is not None  # or it would not be known to be worse
    return (
        f"Use {' or '.join(candidates)}: the data do not show which of them is best{as_good}; "
        f"next is {following.scheduler}, {beside.mean:.2f} times the objective of {verdict.best} "
        f"[{beside.low:.2f}, {beside.high:.2f}]."
    )


def to_use(verdict: Verdict) -> list[str]:
    """The recommended one, or the few that tie when all others are worse; otherwise none."""
    if verdict.decided:
        return [verdict.recommended]
    unclear = _unclear(verdict)
    return unclear if len(unclear) <= FEW and verdict.next_worse else []


def _unclear(verdict: Verdict) -> list[str]:
    """Those of which any may be best. For all that are as good as the best: the simplest."""
    return [verdict.recommended, *verdict.named("unknown")]


def numbers(answer: Answer) -> dict[str, Any]:
    """For report.json."""
    return {
        "kind": "advice",
        "title": "Advice",
        "headline": headline(answer),
        "decided": bool(answer.verdict and answer.verdict.decided),
        "recommended": answer.verdict.recommended if answer.verdict else None,
        "what_would_tell": (
            None if answer.verdict and answer.verdict.decided else undecided_note(answer)
        ),
        "answer": answer,
    }
