"""The answer on one page: HTML, PDF and JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from services.lab.advice.answer import Answer, Changed, headline, numbers, to_use, undecided_note
from services.lab.advice.verdict import Compared, Verdict
from services.lab.reports.document import Block, Document, Section, Table, Text
from services.lab.reports.formatting import counted, listed, number, plus_minus, with_interval
from services.lab.reports.report import write_document
from services.lab.reports.statistics import Estimate

WORDS = {
    "best": "best",
    "worse": "worse",
    "equal": "as good",
    "not better": "not better",
    "unknown": "unclear",
}
# Rows of the table of alternatives: those far behind are only named.
MOST_ROWS = 6


def write_page(answer: Answer, folder: Path, command: str) -> list[Path]:
    return write_document(make_page(answer, command), numbers(answer), [], folder, "report")


def make_page(answer: Answer, command: str) -> Document:
    weights = ", ".join(f"{name} {weight:g}" for name, weight in answer.objective.items() if weight)
    load = "" if answer.load is None else f", offered load {answer.load:.2f}"
    return Document(
        title=f"Advice: {_short(answer)}",
        question=f"Which scheduler for {answer.jobs} on {answer.platform}? To minimise: {weights}.",
        byline=(
            f"{counted(len(answer.runs), 'run')} in {answer.seconds / 60:.1f} minutes; ended by "
            f"{answer.ended_by}{load}."
        ),
        summary=_summary(answer),
        sections=[
            Section("By how much", _alternatives(answer)),
            Section("What would change the answer", _changes(answer)),
            Section("What the answer rests on", _foundations(answer, command)),
        ],
    )


def _short(answer: Answer) -> str:
    candidates = to_use(answer.verdict) if answer.verdict else []
    return f"use {' or '.join(candidates)}" if candidates else "not decided"


def _summary(answer: Answer) -> list[str]:
    verdict = answer.verdict
    lines = [headline(answer)]
    if verdict is None or not verdict.decided:
        lines.append(undecided_note(answer))
    if verdict is None:
        return lines
    if verdict.next_worse is not None:
        lines.append(_next(answer, verdict.next_worse))
    lines += _bound(answer)
    changing = [each.change for each in answer.changed if each.changes]
    unclear = [each.change for each in answer.changed if each.changes is None]
    lines.append(
        (f"Another scheduler is best with: {listed(changing)}. " if changing else "")
        + (f"Not decided with: {listed(unclear)}. " if unclear else "")
        + ("" if changing or unclear else "Nothing that was tried changes the answer. ")
        + (f"Not tried, for lack of time: {listed(answer.not_tried)}." if answer.not_tried else "")
    )
    if answer.failed:
        failed = listed(f"{name} {count:,}" for name, count in answer.failed.items())
        lines.append(f"Tasks failed with {failed}; each is charged its slowest time.")
    return [line.strip() for line in lines]


def _next(answer: Answer, each: Compared) -> str:
    loss = next(loss for loss in answer.losses if loss.scheduler == each.scheduler)
    return (
        f"Next is {each.scheduler}: the objective is {with_interval(each.ratio)} times that of the "
        f"best; each job waits {_duration(loss.wait_s)} longer, and a month costs "
        f"{with_interval(loss.kwh_a_month, 'kWh')} and {with_interval(loss.dollars_a_month, '$')} "
        "more (below 0: less)."
    )


def _bound(answer: Answer) -> list[str]:
    bound = answer.bound
    if bound is None:
        return []
    texts = []
    if bound.makespan:
        texts.append(f"its makespan is {with_interval(bound.makespan)} times the least possible")
    if bound.turnaround:
        texts.append(
            f"its mean turnaround {with_interval(bound.turnaround)} times what it would be if no "
            "job ever waited and each ran as fast as it can"
        )
    if bound.clairvoyant:
        texts.append(
            f"{with_interval(bound.clairvoyant)} times that of earliest finish with knowledge of "
            "the real times"
        )
    return [f"How close to the bound: {'; '.join(texts)}."] if texts else []


def _alternatives(answer: Answer) -> list[Block]:
    verdict = answer.verdict
    if verdict is None:
        return []
    losses = {loss.scheduler: loss for loss in answer.losses}
    rows = []
    for each in verdict.compared[:MOST_ROWS]:
        loss = losses.get(each.scheduler)
        rows.append(
            [
                each.scheduler,
                WORDS[each.standing] + _mark(verdict, each),
                "1" if each.ratio is None else with_interval(each.ratio),
                _duration(loss.wait_s, plus_minus)
                if loss
                else f"(waits {_duration(answer.wait_s, plus_minus)})",
                plus_minus(loss.wait_hours_a_month) if loss else "",
                plus_minus(loss.kwh_a_month) if loss else "",
                plus_minus(loss.dollars_a_month) if loss else "",
                str(verdict.units if each.ratio is None else each.ratio.n),
            ]
        )
    headers = [
        "Scheduler", "Compared with the best", "Objective / best", "More wait per job",
        "More hours waited a month", "More kWh a month", "More $ a month", answer.units_short,
    ]  # fmt: skip
    note = (
        f"Each interval has {verdict.confidence:.2%}, over the {answer.units} in which both took "
        "part, so that all alternatives and interim checks together have 95 %. A scheduler that is "
        f"worse takes part in no further run. A month has {number(answer.tasks_a_month)} jobs at "
        "this rate."
    )
    rest = verdict.compared[MOST_ROWS:]
    if rest:
        ratios = {each.scheduler: number(each.ratio.mean if each.ratio else None) for each in rest}
        note += (
            f" Further behind: {listed(f'{name} ({ratio} ×)' for name, ratio in ratios.items())}."
        )
    return [Table(headers, rows, text_columns=(0, 1)), Text(note)]


def _mark(verdict: Verdict, each: Compared) -> str:
    if verdict.decided:
        return " (recommended)" if each.scheduler == verdict.recommended else ""
    return " (smallest mean)" if each.scheduler == verdict.best else ""


def _changes(answer: Answer) -> list[Block]:
    rows = [
        [each.change, each.best, _effect(each), with_interval(each.ratio) if each.ratio else "1"]
        for each in answer.changed
    ]
    if not rows:
        return []
    headers = ["Changed to", "Smallest mean", "Does the answer change?", "Recommended / best"]
    note = (
        "Other objectives are computed from the same runs, in which learners were trained for the "
        "objective that was asked for."
    )
    return [Table(headers, rows, text_columns=(0, 1, 2)), Text(note)]


def _effect(each: Changed) -> str:
    if each.changes is None:
        return "not decided"
    return "yes" if each.changes else "no"


def _foundations(answer: Answer, command: str) -> list[Block]:
    units = (
        "every seed gives other jobs of the same kind"
        if answer.units == "seeds"
        else "the trace's results in consecutive stretches of equally many jobs; further replays "
        "draw other noise and other starts of learners"
    )
    method = (
        f"Schedulers are compared in pairs of the same {answer.unit} ({units}), by the t interval "
        "of the logarithm of the ratio, with Bonferroni's correction over schedulers and interim "
        "checks. The Oracle and the clairvoyant scheduler are references: nobody can deploy them."
    )
    return [Text(" ".join(answer.rests_on)), Text(method), Text(command, "code")]


def _duration(value: Estimate | None, text: Callable[[Estimate, str], str] = with_interval) -> str:
    """In minutes from a minute on."""
    if value is None:
        return "–"
    if abs(value.mean) < 60:
        return text(value, "s")
    minutes = Estimate(
        value.mean / 60,
        None if value.low is None else value.low / 60,
        None if value.high is None else value.high / 60,
        value.n,
    )
    return text(minutes, "min")
