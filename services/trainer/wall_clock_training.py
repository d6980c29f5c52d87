"""Training by wall clock: whenever enough results have arrived, for a share of the time."""

from __future__ import annotations

import asyncio
from collections import deque

import pyarrow as pa
from river.drift import ADWIN

from services.trainer import stored_results
from services.trainer.learner import Learner, Results
from services.trainer.metrics import Metrics
from services.trainer.result_window import ResultWindow
from services.trainer.training_loop import TrainingLoop
from shared.bus.client import Bus
from shared.messages.runs import RunRecord
from shared.store.client import Store

# Bounded, so that a learner never lags: the oldest results are dropped.
INBOX_ROWS = 100_000
IDLE_SECONDS = 0.1


class WallClockTraining(TrainingLoop):
    def __init__(
        self, record: RunRecord, learner: Learner, bus: Bus, store: Store, metrics: Metrics
    ) -> None:
        super().__init__(record, learner, bus, store, metrics)
        self._inbox: deque[pa.RecordBatch] = deque()
        self._inbox_rows = 0
        self._window = ResultWindow(learner.window)
        self._drift = DriftDetector(record.spec.learning.forest.drift_delta)
        self._cpu_share = bus.settings.trainer_share

    def add(self, scheduler: str, rows: pa.RecordBatch) -> None:
        if scheduler != self._teacher:
            return
        self._inbox.append(rows)
        self._inbox_rows += rows.num_rows
        while self._inbox_rows > INBOX_ROWS:
            self._inbox_rows -= self._inbox.popleft().num_rows

    def take_results_of(self, failed: TrainingLoop) -> None:
        if isinstance(failed, WallClockTraining):
            self._inbox, self._inbox_rows = failed._inbox, failed._inbox_rows

    async def _restore(self) -> None:
        stored = await asyncio.to_thread(
            stored_results.read_results,
            self._store,
            self._run,
            self._teacher,
            self._learner.window,
            first=self._first_task,
        )
        if stored is not None:
            self._window.add(stored)
            if self._publisher.in_service.version:
                self._window.new = 0  # the model in service knows them

    async def _train(self) -> bool:
        received, self._inbox, self._inbox_rows = list(self._inbox), deque(), 0
        if not await asyncio.to_thread(self._is_due, received):
            return False
        drifted, new = self._drift.take(), self._window.new
        self._objective_changed = False
        self._window.new = 0  # results that arrive meanwhile count for the next model
        challenge = await asyncio.to_thread(self._challenge, self._window.results(), new)
        if challenge is not None:
            publisher = self._publisher
            publish = publisher.publish if challenge.accepted else publisher.keep_back
            reason = ("drift: " if drifted else "") + challenge.reason
            await publish(challenge.update.body, challenge.window, reason, challenge.metrics)
        return True

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds * (1 / self._cpu_share - 1) if seconds else IDLE_SECONDS)

    def _is_due(self, received: list[pa.RecordBatch]) -> bool:
        for rows in received:
            new = self._window.add(stored_results.results_of(rows))
            if new is not None:
                self._detect_drift(new)
        if not len(self._window):
            return False
        generated, judge_on = self._spec.learning.pretrain_tasks, self._learner.judge_on
        if not generated and len(self._window) < 2 * judge_on:
            return False  # too few to compare models
        model, results = self._publisher.in_service.body, self._window.results()
        urgent = self._drift.detected or self._objective_changed
        return urgent or self._learner.is_due(model, results, self._window.new)

    def _detect_drift(self, results: Results) -> None:
        model = self._publisher.in_service.body
        errors = None if model is None else self._learner.errors(model, results)
        if errors is not None:
            self._drift.add(errors.tolist())


class DriftDetector:
    """Whether a model has become worse: ADWIN (Bifet and Gavalda 2007) on its errors."""

    def __init__(self, delta: float) -> None:
        self._adwin = ADWIN(delta=delta)  # type: ignore[no-untyped-call]
        self.detected = False

    def add(self, errors: list[float]) -> None:
        for error in errors:
            before = self._adwin.estimation
            self._adwin.update(error)  # type: ignore[no-untyped-call]
            # ADWIN also detects smaller errors, which need no new model.
            if self._adwin.drift_detected and self._adwin.estimation > before:
                self.detected = True

    def take(self) -> bool:
        """Whether drift was detected since the last call."""
        detected, self.detected = self.detected, False
        return detected
