"""A new model (the challenger) compared with the one in service (the champion).

The challenger learns from all but the newest results of the window, and both are scored on those.
"""

from __future__ import annotations

from dataclasses import dataclass

from services.trainer.learner import Learner, Results, Update
from services.trainer.model_publisher import TrainingWindow


@dataclass(frozen=True, slots=True)
class Challenge:
    update: Update
    accepted: bool
    reason: str
    metrics: dict[str, float]
    window: TrainingWindow


def challenge(
    learner: Learner, champion: bytes | None, results: Results, new: int, version: int
) -> Challenge | None:
    """Have the learner make a model and judge it; None: it has made none. Without `judge_on` every
    model is accepted."""
    known, unseen = results.all_but_last(learner.judge_on), results.last(learner.judge_on)
    update = learner.learn(champion, known, new, version)
    if update is None:
        return None
    accepted, reason, metrics = True, update.reason, dict(update.metrics)
    if learner.judge_on:
        metrics["score"] = learner.score(update.body, unseen)
        reason = reason or "the first model"
    if learner.judge_on and champion is not None:
        metrics["champion_score"] = learner.score(champion, unseen)
        accepted = metrics["score"] <= metrics["champion_score"] * (1 + learner.tolerance)
        scores = f"{metrics['score']:.4f} against {metrics['champion_score']:.4f}"
        outcome = "not worse" if accepted else "worse"
        reason = f"{outcome}: {scores} on the newest {len(unseen)} results"
    return Challenge(update, accepted, reason, metrics, _training_window(update, known))


def _training_window(update: Update, results: Results) -> TrainingWindow:
    first, last = (int(results.tasks.task_id[row]) if len(results) else -1 for row in (0, -1))
    return TrainingWindow(
        count=len(results) if update.trained_on is None else update.trained_on,
        first_task=first if update.first_task is None else update.first_task,
        last_task=last,
    )
