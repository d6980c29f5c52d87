"""What is seen, in sentences. Each one is written from numbers that make it true.

A difference is claimed only where the paired test tells two schedulers apart after correction;
otherwise the sentence says that the data do not tell them apart. With one seed there is no test,
and the sentences only report what that seed gave.
"""

from __future__ import annotations

from dataclasses import dataclass

from services.lab.recovery import NEAR_OVER, NEAR_PERCENT
from services.lab.report.data import ORACLE, Study
from services.lab.report.findings import Contest, Findings
from services.lab.report.wording import (
    chance,
    counted,
    listed,
    number,
    quantity,
    times,
)
from services.lab.statistics import PairedTest

# A scheduler whose tasks wait this many times as long as they run cannot keep up.
OVERLOADED = 5.0
# A makespan this close to the bound that knows arrivals was set by the arrivals.
ARRIVALS_DECIDE = 1.05


# Topics of sentences that concern the whole experiment.
GENERAL = ("few", "everywhere", "sweep")


@dataclass(frozen=True)
class Sentence:
    topic: str
    variant: str
    text: str


def sentences(study: Study, findings: Findings) -> list[Sentence]:
    """Everything that the outcomes show, variant by variant."""
    found: list[Sentence] = []
    for contest in findings.contests:
        for topic, texts in (
            ("time", _time(contest)),
            ("undecided", _undecided(contest)),
            ("makespan", _makespan(contest)),
            ("energy", _trade_off(contest, "total_energy", "energy", "J")),
            ("cost", _trade_off(contest, "total_cost", "money", "$")),
            ("regret", _regret(study, contest)),
            ("recovery", _recovery(study, contest)),
            ("overload", _overload(contest)),
            ("failed", _failed(contest)),
        ):
            found += [Sentence(topic, contest.variant, text) for text in texts]
    return found


def told_apart(test: PairedTest | None) -> bool:
    return test is not None and test.significant


def significance(test: PairedTest) -> str:
    if test.p_adjusted is None:
        return chance(test.p)
    return f"{chance(test.p_adjusted)} after correction"


def effect(test: PairedTest) -> str:
    """`1.41 times [1.38, 1.44] as long`, with p."""
    return f"{times(test.ratio)} as long ({significance(test)})"


def _time(contest: Contest) -> list[str]:
    ranked = contest.best("total_time", contest.rivals)
    if not ranked:
        return []
    best = ranked[0]
    result = contest.results[best]
    shown = quantity(result["total_time"], "s")
    text = (
        f"{best} has the least total execution time{_of_all(contest, best, 'total_time')}: {shown}"
    )
    if best != ORACLE and result.over_oracle is not None:
        text += f", {times(result.over_oracle)} that of the Oracle"
    if len(ranked) == 1:
        return [text + "."]
    second = ranked[1]
    test = contest.test("total_time", second, best)
    if test is None:
        return [text + "."]
    if test.p is None:
        return [f"{text}. In this one seed {second} takes {times(test.ratio)} as long."]
    if test.significant:
        return [f"{text}. The next, {second}, takes {effect(test)}."]
    tied = [n for n in ranked[1:] if not told_apart(contest.test("total_time", n, best))]
    return [f"{text}. But the data do not tell it from {listed(tied)}; {_apart(test)}."]


def _of_all(contest: Contest, best: str, figure: str) -> str:
    """Whether the Oracle has even less: it need not, of energy or when tasks fail."""
    above = ORACLE in contest.results and contest.mean(ORACLE, figure) <= contest.mean(best, figure)
    return " of all but the Oracle" if above else " of all"


def _apart(test: PairedTest) -> str:
    if test.identical:
        return f"{test.first} took exactly as long in every seed"
    return f"{test.first} took {effect(test)}"


def _undecided(contest: Contest) -> list[str]:
    """Pairs beyond the leader's that the data do not tell apart."""
    ranked = contest.best("total_time", contest.rivals)
    pairs = [
        f"{first} and {second}"
        for i, first in enumerate(ranked[1:], start=1)
        for second in ranked[i + 1 :]
        if (test := contest.test("total_time", first, second)) is not None
        and test.p is not None
        and not test.significant
    ]
    if not pairs:
        return []
    if len(pairs) > 6:
        pairs = [*pairs[:6], f"{counted(len(pairs) - 6, 'further pair')} (see the table)"]
    return [f"In total time the data do not tell apart: {'; '.join(pairs)}."]


def _makespan(contest: Contest) -> list[str]:
    ranked = contest.best("makespan")
    multiples = {n: contest.results[n].over_bound for n in ranked if contest.results[n].over_bound}
    if not multiples:
        return []
    best, last = ranked[0], ranked[-1]
    texts = []
    text = f"Makespans lie between {times(multiples.get(best))} the cluster bound ({best})"
    known = [found for n in ranked if (found := contest.results[n].over_arrival_bound)]
    decided = bool(known) and max(found.mean for found in known) < ARRIVALS_DECIDE
    if decided:
        texts.append(f"Makespans are about {times(multiples.get(best))} the cluster bound.")
    elif best == last:
        texts.append(f"The makespan is {times(multiples.get(best))} the cluster bound ({best}).")
    else:
        texts.append(f"{text} and {times(multiples.get(last))} ({last}).")
    if decided:
        most = number(max(found.mean for found in known), 4)
        texts.append(
            f"Knowing when tasks arrive, no makespan is more than {most} times its bound: "
            "here the arrivals set the makespan, not the schedulers."
        )
        return texts
    beating = [
        test
        for name in ranked
        if name != ORACLE
        and (test := contest.test("makespan", name, ORACLE)) is not None
        and test.significant
        and test.ratio.mean < 1
    ]
    if beating:
        names = listed([f"{test.first} ({times(test.ratio)} its makespan)" for test in beating])
        verb = "beats" if len(beating) == 1 else "beat"
        texts.append(
            f"On makespan {names} {verb} the Oracle: it takes the fastest share for each task "
            "and knows nothing of queues, so it may pile work on one kind of device."
        )
    return texts


def _trade_off(contest: Contest, figure: str, what: str, unit: str) -> list[str]:
    """Who spends least, whether that is certain, and what it costs in time."""
    ranked = contest.best(figure, contest.rivals)
    if len(ranked) < 2 or contest.mean(ranked[-1], figure) == 0:
        return []
    least, first = ranked[0], contest.best("total_time", contest.rivals)[0]
    aside = _of_all(contest, least, figure)
    text = (
        f"{least} spends the least {what}{aside}: {quantity(contest.results[least][figure], unit)}"
    )
    next_best = contest.test(figure, least, ranked[1])
    if next_best is not None and next_best.p is not None and not next_best.significant:
        text += f" (the data do not tell that from {ranked[1]})"
    if least == first:
        second = contest.best("total_time", contest.rivals)[1]
        ahead = contest.test("total_time", least, second)
        if ahead is not None and ahead.significant:
            return [f"{text}; its total time is the least as well."]
        return [f"{text}."]
    saved, slower = contest.test(figure, least, first), contest.test("total_time", least, first)
    if saved is None or slower is None:
        return [f"{text}."]
    if saved.p is None or saved.significant:
        text += f", {times(saved.ratio)} what {first} spends"
    elif ranked[1] != first:
        text += f"; the data do not tell it from what {first} spends"
    if slower.p is None or slower.significant:
        return [f"{text}, in {times(slower.ratio)} the execution time of {first}."]
    return [f"{text}; in execution time the data do not tell {least} and {first} apart."]


def _regret(study: Study, contest: Contest) -> list[str]:
    learners = {str(name) for name in study.select("models", contest.variant)["name"]}
    learners |= {"hybrid_ml", "rl_agent", "frozen_forest"}
    shown = []
    for name in contest.best("total_time"):
        result = contest.results[name]
        if name not in learners or result.regret is None or result.over_oracle is None:
            continue
        if result.regret.mean > 0:
            more = (result.over_oracle.mean - 1) * 100
            shown.append(f"{name} {quantity(result.regret, 's')}, {number(more)} %")
    if not shown:
        return []
    return [f"Over the judged tasks the learners spent more than the Oracle: {'; '.join(shown)}."]


def _recovery(study: Study, contest: Contest) -> list[str]:
    # It is measured only where it is asked for; elsewhere "never" would be a false claim.
    if "recovery" not in study.experiment.figures or ORACLE not in contest.results:
        return []
    texts, never, at_once = [], [], []
    for name in contest.best("total_time", contest.rivals):
        after = contest.results[name].recovered
        known = sorted(tasks for tasks in after if tasks is not None)
        if not known:
            never.append(name)
        elif max(known) == 0 and len(known) == len(after):
            at_once.append(name)
        else:
            span = str(known[0]) if known[0] == known[-1] else f"{known[0]} to {known[-1]}"
            seeds = "" if len(known) == len(after) else f" in {len(known)} of {len(after)} seeds"
            texts.append(f"{name} after {span} tasks{seeds}")
    parts = []
    if texts:
        lead = f"Back within {NEAR_PERCENT} of the Oracle (over the next {NEAR_OVER} tasks)"
        parts.append(f"{lead}: {'; '.join(texts)}.")
    if at_once:
        parts.append(f"Within it from the first judged task on: {listed(at_once)}.")
    if never:
        parts.append(f"In no seed within {NEAR_PERCENT}: {listed(never)}.")
    return [" ".join(parts)] if parts else []


def _overload(contest: Contest) -> list[str]:
    late = []
    for name in contest.best("avg_wait"):
        wait, run = contest.mean(name, "avg_wait"), contest.mean(name, "avg_time")
        if run > 0 and wait > OVERLOADED * run:
            late.append(f"{name} ({number(wait / run, 2)} times)")
    if not late:
        return []
    return [
        "Overload: tasks wait far longer than they run, so the queue decides the turnaround. "
        f"Mean wait over mean execution: {listed(late)}."
    ]


def _failed(contest: Contest) -> list[str]:
    failed = [
        f"{name} {result.failed:,} of {result.tasks:,} "
        f"({number(100 * result.failed / result.tasks)} %)"
        for name, result in contest.results.items()
        if result.failed and result.tasks
    ]
    if not failed:
        return []
    return [
        f"Tasks failed because they did not fit a GPU's memory: {'; '.join(failed)}. A failed task "
        "costs no time, energy or money, so these schedulers look better than they are."
    ]
