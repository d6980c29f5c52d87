"""The answer to the question which scheduler to use; docs/advice.md says how it is found."""

from __future__ import annotations

from typing import Any

import pandas as pd


class Advice:
    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report  # everything that the page says, as `report.json` has it
        self._answer: dict[str, Any] = report["answer"]

    def __repr__(self) -> str:
        return f"<advice: {self.headline}>"

    @property
    def headline(self) -> str:
        """The answer in a sentence."""
        return str(self.report["headline"])

    @property
    def decided(self) -> bool:
        return bool(self.report["decided"])

    @property
    def recommended(self) -> str | None:
        """The scheduler to use; if the answer is not decided, the one with the smallest mean. None:
        the budget was too short for any answer."""
        name: str | None = self.report["recommended"]
        return name

    @property
    def what_would_tell(self) -> str | None:
        """What a decision needs, if there is none."""
        text: str | None = self.report["what_would_tell"]
        return text

    @property
    def rests_on(self) -> list[str]:
        """The assumptions, in sentences."""
        return list(self._answer["rests_on"])

    def compared(self) -> pd.DataFrame:
        """One row for each scheduler, best first: its objective over that of the best (`ratio`,
        with its interval), how that was judged, and what it costs more than the recommended one."""
        verdict = self._answer["verdict"] or {"compared": []}
        losses = {loss["scheduler"]: loss for loss in self._answer["losses"]}
        rows = [
            {
                "scheduler": each["scheduler"],
                "standing": each["standing"],
                **_interval("ratio", each["ratio"]),
                "more_wait_s": _mean(losses.get(each["scheduler"]), "wait_s"),
                "more_kwh_a_month": _mean(losses.get(each["scheduler"]), "kwh_a_month"),
                "more_dollars_a_month": _mean(losses.get(each["scheduler"]), "dollars_a_month"),
            }
            for each in verdict["compared"]
        ]
        columns = ["scheduler", "standing", "ratio", "ratio_low", "ratio_high"]
        columns += ["more_wait_s", "more_kwh_a_month", "more_dollars_a_month"]
        return pd.DataFrame(rows, columns=columns).set_index("scheduler")

    def changed(self) -> pd.DataFrame:
        """One row for each changed question: which scheduler is best then, whether that changes the
        answer (None: not decided), and the recommended one's objective over the best one's."""
        rows = [
            {
                "change": each["change"],
                "best": each["best"],
                "changes": each["changes"],
                **_interval("ratio", each["ratio"]),
            }
            for each in self._answer["changed"]
        ]
        columns = ["change", "best", "changes", "ratio", "ratio_low", "ratio_high"]
        return pd.DataFrame(rows, columns=columns).set_index("change")


def _interval(name: str, estimate: dict[str, Any] | None) -> dict[str, float | None]:
    """Of the best itself there is no estimate: its ratio is 1."""
    if estimate is None:
        return {name: 1.0, f"{name}_low": None, f"{name}_high": None}
    low, high = estimate["low"], estimate["high"]
    return {name: estimate["mean"], f"{name}_low": low, f"{name}_high": high}


def _mean(loss: dict[str, Any] | None, figure: str) -> float:
    """Without a loss it is the recommended one."""
    estimate = loss[figure] if loss else {"mean": 0.0}
    return float("nan") if estimate is None else float(estimate["mean"])
