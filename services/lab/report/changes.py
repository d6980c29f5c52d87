"""What differs between two folders of the same experiment: in the settings, in the outcomes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from services.lab.report.data import Study
from services.lab.report.methods import difference, specs_by_variant
from services.lab.report.wording import chance, listed, times
from services.lab.statistics import Estimate, PairedTest, corrected, paired_test, ratio

# Figures whose ratios are shown beside that of the total time.
ALSO = {"makespan": "Makespan", "total_energy": "Energy", "p95_turnaround": "p95 turnaround"}


@dataclass(frozen=True)
class Change:
    """One scheduler in one variant: a later folder over the first."""

    letter: str
    variant: str
    scheduler: str
    test: PairedTest  # total time
    also: dict[str, Estimate | None]


def settings_that_differ(first: Study, other: Study) -> list[tuple[str, Any, Any]]:
    """Fields of the declaration, the variants' specs and the provenance that are not alike."""
    found = []
    for field in ("name", "tasks", "judge_from", "baseline"):
        old, new = getattr(first.experiment, field), getattr(other.experiment, field)
        if old != new:
            found.append((field, old, new))
    if first.seeds != other.seeds:
        found.append(("seeds", first.seeds, other.seeds))
    ours, theirs = specs_by_variant(first), specs_by_variant(other)
    for variant in [*ours, *(name for name in theirs if name not in ours)]:
        if variant not in ours or variant not in theirs:
            found.append((f"variant {variant!r}", variant in ours, variant in theirs))
            continue
        lead = f"{variant}: " if len(ours) > 1 else ""
        changed = difference(ours[variant], theirs[variant])
        # The number of tasks is told once, above.
        found += [(lead + path, old, new) for path, (old, new) in changed if path != "tasks"]
    for field in ("version", "commit", "python", "machine", "packages", "arena"):
        changed = difference(first.provenance.get(field), other.provenance.get(field), field)
        found += [(path, old, new) for path, (old, new) in changed]
    return found


def changes_since(studies: dict[str, Study]) -> list[Change]:
    first = studies["A"]
    found: list[Change] = []
    for letter, study in list(studies.items())[1:]:
        for variant in first.variants:
            for name in first.schedulers(variant):
                new, old = (
                    study.of(variant, name, "total_time"),
                    first.of(variant, name, "total_time"),
                )
                test = paired_test((letter, "A"), new, old)
                if test is None:
                    continue
                also = {
                    figure: ratio(study.of(variant, name, figure), first.of(variant, name, figure))
                    for figure in ALSO
                }
                found.append(Change(letter, variant, name, test, also))
    tests = corrected([change.test for change in found])
    return [
        Change(c.letter, c.variant, c.scheduler, test, c.also)
        for c, test in zip(found, tests, strict=True)
    ]


def said_of_settings(settings: dict[str, list[tuple[str, Any, Any]]]) -> list[str]:
    texts = []
    for letter, found in list(settings.items())[1:]:
        if not found:
            texts.append(f"{letter} has the same settings, version and machine as A.")
            continue
        shown = [f"{path} ({short(old)} → {short(new)})" for path, old, new in found[:4]]
        more = f" and {len(found) - 4} more" if len(found) > 4 else ""
        texts.append(f"{letter} differs from A in {'; '.join(shown)}{more}.")
    return texts


def said_of_changes(studies: dict[str, Study], changes: list[Change]) -> list[str]:
    texts = []
    for letter in list(studies)[1:]:
        judged = {_judged(studies[each]) for each in ("A", letter)}
        if len(judged) > 1:
            texts.append(
                f"{letter} judges {_judged(studies[letter]):,} tasks, A {_judged(studies['A']):,}: "
                "total times, energies and makespans differ for that reason alone."
            )
        own = [change for change in changes if change.letter == letter]
        if not own:
            texts.append(
                f"{letter} and A share no seed of a scheduler, so there is nothing to pair."
            )
            continue
        same = [who(studies["A"], c) for c in own if c.test.identical]
        moved = [c for c in own if c.test.significant and not c.test.identical]
        moved.sort(key=lambda c: -abs(c.test.ratio.mean - 1))
        unclear = [
            who(studies["A"], c)
            for c in own
            if not c.test.significant and not c.test.identical and c.test.p is not None
        ]
        for change in moved[:4]:
            name, p = who(studies["A"], change), chance(change.test.p_adjusted)
            texts.append(
                f"{name} takes {times(change.test.ratio)} as long in {letter} as in A "
                f"({p} after correction)."
            )
        if len(moved) > 4:
            texts.append(f"{len(moved) - 4} further differences of {letter} are in the table.")
        if unclear:
            texts.append(f"The data do not tell {letter} from A for {listed(unclear)}.")
        if same:
            texts.append(
                f"Exactly the same total time in every seed of {letter} and A: {listed(same)}."
            )
        if all(c.test.p is None for c in own):
            texts.append(f"{letter} and A share one seed only: there are ratios, but no tests.")
    return texts


def _judged(study: Study) -> int:
    return study.experiment.tasks - study.experiment.judge_from


def who(study: Study, change: Change) -> str:
    label = study.label(change.variant)
    return (
        f"{change.scheduler} ({label})" if len(study.variants) > 1 and label else change.scheduler
    )


def short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"
