"""Sentences about the whole experiment: a sweep's trends, the reference, the summary box."""

from __future__ import annotations

from itertools import pairwise

from services.lab.report.claims import FAILS, HOLDS, OPEN
from services.lab.report.data import Study
from services.lab.report.findings import Contest, Findings
from services.lab.report.text import GENERAL, OVERLOADED, Sentence, told_apart
from services.lab.report.wording import listed, signed, times
from services.lab.statistics import PairedTest, corrected, estimate, paired_test

# A change of the share on GPUs below this is not worth a word.
LEAST_SHARE = 0.01

# Figures that are held against each other from one end of a sweep to the other.
_SWEPT = {
    "total_time": "total time",
    "avg_turnaround": "mean turnaround",
    "total_energy": "energy",
    "total_cost": "cost",
}


def overall(study: Study, findings: Findings) -> list[Sentence]:
    found = [*_few_seeds(study), *_fastest_everywhere(findings), *_sweep(study, findings)]
    return [*found, *_claims(findings), *_reference(findings)]


def summary(study: Study, everything: list[Sentence]) -> list[str]:
    """Three to six of them for the box on top; what concerns all variants goes first."""
    order = ("few", "claim", "everywhere", "reference", "sweep", "time", "undecided", "recovery",
             "makespan", "energy", "regret", "overload", "failed", "cost")  # fmt: skip
    variants = len(study.variants)
    general = [s for s in everything if variants == 1 or s.topic in GENERAL]
    chosen = sorted(general, key=lambda sentence: order.index(sentence.topic))
    # What went wrong belongs on top, however many findings there are.
    failed = [sentence for sentence in everything if sentence.topic == "failed"][:1]
    chosen = [sentence for sentence in chosen if sentence.topic != "failed"]
    if variants > 1:
        chosen += [s for s in everything if s.topic in ("claim", "reference")]
        chosen += _shared(study, everything)
    texts = [sentence.text for sentence in chosen]
    return [*dict.fromkeys(texts[: 6 - len(failed)]), *(sentence.text for sentence in failed)]


def _shared(study: Study, everything: list[Sentence]) -> list[Sentence]:
    """What is the same in every variant, word for word, is told as such."""
    counts: dict[str, int] = {}
    for sentence in everything:
        counts[sentence.text] = counts.get(sentence.text, 0) + 1
    return [
        Sentence("all", "", f"In every variant: {text}")
        for text, count in counts.items()
        if count == len(study.variants)
    ]


def _place(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def _few_seeds(study: Study) -> list[Sentence]:
    n = len(study.seeds)
    if n == 1:
        text = (
            "One seed only: there are no intervals and no tests, and any difference may be chance. "
            "Run more seeds before you conclude anything."
        )
        return [Sentence("few", "", text)]
    return []


def _fastest_everywhere(findings: Findings) -> list[Sentence]:
    if len(findings.contests) < 2:
        return []
    leaders: dict[str, list[str]] = {}
    for contest in findings.contests:
        ranked = contest.best("total_time", contest.rivals)
        if not ranked:
            return []
        leaders.setdefault(ranked[0], []).append(contest.label or contest.variant)
    clear = all(
        told_apart(contest.test("total_time", ranked[1], ranked[0]))
        for contest in findings.contests
        if len(ranked := contest.best("total_time", contest.rivals)) > 1
    )
    doubt = "" if clear else " Not every lead is beyond doubt: see the tests."
    if len(leaders) == 1:
        name = next(iter(leaders))
        text = f"Of those that do not know the answer, {name} has the least total time in "
        text += "every variant."
    else:
        parts = [f"{name} in {listed(labels)}" for name, labels in leaders.items()]
        text = f"Least total time of those that do not know the answer: {'; '.join(parts)}."
    return [Sentence("everywhere", "", text + doubt)]


def _sweep(study: Study, findings: Findings) -> list[Sentence]:
    """From one end of the axis to the other: paired by seed, Holm over all that is looked at."""
    if not study.is_sweep or len(findings.contests) < 2:
        return []
    axis = study.experiment.axis or "the setting"
    first, last = findings.contests[0], findings.contests[-1]
    span = f"From {axis} = {_place(first.value)} to {_place(last.value)}"
    names = [name for name in first.results if name in last.results]
    tested: list[tuple[str, PairedTest]] = []
    for figure in _SWEPT:
        for name in names:
            before, after = (study.of(c.variant, name, figure) for c in (first, last))
            test = paired_test((name, name), after, before)
            if test is not None and test.p is not None:
                tested.append((figure, test))
    adjusted = corrected([test for _, test in tested])
    found = _overloaded_from(axis, findings)
    for figure, shown in _SWEPT.items():
        own = [t for (f, _), t in zip(tested, adjusted, strict=True) if f == figure]
        changed = [f"{t.first} {times(t.ratio)}" for t in own if t.significant]
        same = [t.first for t in own if not t.significant]
        if changed:
            text = f"{span}, {shown} becomes: {'; '.join(changed)} what it was."
            text += f" The data do not show a change for {listed(same)}." if same else ""
            found.append(Sentence("sweep", "", text))
        elif same:
            text = f"{span}, the data do not show a change of {shown} for any scheduler."
            found.append(Sentence("sweep", "", text))
    return found + _gpu_shares(study, span, first, last)


def _gpu_shares(study: Study, span: str, first: Contest, last: Contest) -> list[Sentence]:
    """Whose share on GPUs changes: the interval of the change, paired by seed, leaves 0 out."""
    moved = []
    for name in first.results:
        before, after = (study.of(c.variant, name, "gpu_share") for c in (first, last))
        change = estimate([after[seed] - before[seed] for seed in before.keys() & after.keys()])
        if change is None or change.low is None or change.high is None:
            continue
        if abs(change.mean) >= LEAST_SHARE and not change.low <= 0 <= change.high:
            ends = (first.mean(name, "gpu_share"), last.mean(name, "gpu_share"))
            moved.append(f"{name} {ends[0]:.2f} to {ends[1]:.2f}, by {signed(change)}")
    if not moved:
        return []
    return [Sentence("sweep", "", f"{span}, the mean share on GPUs goes: {'; '.join(moved)}.")]


def _overloaded_from(axis: str, findings: Findings) -> list[Sentence]:
    """The first value from which on a scheduler cannot keep up at any higher one."""
    starts: dict[float, list[str]] = {}
    for name in findings.contests[0].results:
        late = [
            contest.mean(name, "avg_wait") > OVERLOADED * contest.mean(name, "avg_time")
            for contest in findings.contests
            if name in contest.results
        ]
        values = [c.value for c in findings.contests if name in c.results]
        run = 0
        while run < len(late) and late[-1 - run]:
            run += 1
        start = values[-run] if run > 0 else None
        if start is not None:
            starts.setdefault(start, []).append(name)
    if not starts:
        return []
    lowest = findings.contests[0].value
    parts = [
        f"at every value {listed(names)}" if start == lowest
        else f"from {_place(start)} on {listed(names)}"
        for start, names in sorted(starts.items())
    ]  # fmt: skip
    text = f"Tasks wait more than {OVERLOADED:.0f} times as long as they run, by {axis}: "
    return [Sentence("sweep", "", text + "; ".join(parts) + ".")]


def _claims(findings: Findings) -> list[Sentence]:
    """What does not hold goes first: it must not be overlooked."""
    rank = [FAILS, OPEN, HOLDS]
    verdicts = sorted(findings.claims, key=lambda verdict: rank.index(verdict.verdict))
    return [Sentence("claim", verdict.variant, verdict.text) for verdict in verdicts]


def _reference(findings: Findings) -> list[Sentence]:
    found = []
    for variant, compared in findings.references:
        contest = next(c for c in findings.contests if c.variant == variant)
        names = [row.scheduler for row in compared.rows]
        if compared.holds:
            text = (
                f"Our means are in the order of the reference: {', '.join(names)}, fastest first."
            )
        else:
            swaps = [
                f"{second} is faster than {first} here"
                + ("" if told_apart(contest.test("total_time", first, second))
                   else ", though the data do not tell them apart")
                for first, second in compared.swapped
            ]  # fmt: skip
            text = f"Our means are not in the order of the reference: {'; '.join(swaps)}."
        close = [
            f"{a} and {b}"
            for a, b in pairwise(names)
            if (a, b) not in compared.swapped
            and (test := contest.test("total_time", a, b)) is not None
            and test.p is not None
            and not test.significant
        ]
        if close:
            text += f" But the data do not tell apart: {'; '.join(close)}."
        if compared.missing:
            text += f" Not in these runs: {listed(compared.missing)}."
        found.append(Sentence("reference", variant, text))
    return found
