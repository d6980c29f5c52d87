"""Trains the learners of one run: prepare, receive results, train, publish models.

A restarted trainer continues: it reads results from ClickHouse and models from the bus, and
continues with the next version.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from onnxruntime import InferenceSession

from services.trainer import forest, stored_results
from services.trainer.dqn import Dqn, Results
from services.trainer.forest import ForestLearner, LabelledTasks
from services.trainer.metrics import Metrics
from services.trainer.model_publisher import ModelPublisher, TrainingWindow
from shared.bus.client import Bus
from shared.domain.schedulers import AGENT, FOREST
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.domain.workload import Cursor, generate
from shared.messages import batches
from shared.messages.forest_model import open_model
from shared.messages.models import Manifest
from shared.messages.runs import RunRecord
from shared.store.client import Store

# Pre-training uses another seed than the run, whose tasks must not be known in advance.
PRETRAIN_SEED = 0x5EED
# Bounded, so that a learner never lags: the oldest results and steps are dropped.
INBOX_ROWS = 100_000
MAX_STEPS_DUE = 1000
STEPS_PER_TURN = 50
# Fewer after a surprise, so that models are published more often.
STEPS_PER_TURN_SURPRISED = 15
IDLE_SECONDS = 0.1


class TrainingLoop(ABC):
    """Results may arrive at any time; one lock covers training, publishing and rollbacks."""

    name: ClassVar[str]
    model_format: ClassVar[Literal["onnx", "safetensors"]]

    def __init__(self, record: RunRecord, bus: Bus, store: Store, metrics: Metrics) -> None:
        self._spec = record.spec
        self._store = store
        self._metrics = metrics
        self._publisher = ModelPublisher(bus, record.run, self.name, self.model_format, metrics)
        self._inbox: deque[pa.RecordBatch] = deque()
        self._inbox_rows = 0
        self._last_task = -1  # of the newest result received
        self._cpu_share = bus.settings.trainer_share
        self._lock = asyncio.Lock()
        self._prepared = asyncio.Event()

    def add(self, rows: pa.RecordBatch) -> None:
        self._inbox.append(rows)
        self._inbox_rows += rows.num_rows
        while self._inbox_rows > INBOX_ROWS:
            self._inbox_rows -= self._inbox.popleft().num_rows

    def take_inbox_of(self, failed: TrainingLoop) -> None:
        """Its results are acknowledged, so they would not be redelivered."""
        self._inbox, self._inbox_rows = failed._inbox, failed._inbox_rows

    async def prepare(self) -> None:
        """Pre-train and publish the first model; after a restart, load what is stored."""
        async with self._lock:
            await self._prepare()
            await self._publish_missing_event()
        self._prepared.set()

    async def _publish_missing_event(self) -> None:
        """A trainer that was killed may have published a model without its event."""
        newest = self._publisher.newest
        if newest and not await asyncio.to_thread(stored_results.has_model, self._store, newest):
            await self._publisher.publish_event(newest, shipped=True)

    async def train(self) -> None:
        """Train whenever there are new results, for the configured share of the time."""
        while True:
            started = time.perf_counter()
            async with self._lock:
                steps = await self._train()
            seconds = time.perf_counter() - started
            if steps:
                self._metrics.steps.labels(self.name).inc(steps)
                self._metrics.seconds.labels(self.name).inc(seconds)
            await asyncio.sleep(seconds * (1 / self._cpu_share - 1) if steps else IDLE_SECONDS)

    async def roll_back(self, version: int) -> Manifest:
        await self._prepared.wait()
        async with self._lock:
            model = await self._publisher.roll_back(version)
            self._continue_from(model.body)
        return model.manifest

    def _received(self, limit: int) -> pa.RecordBatch | None:
        """The newest results in the inbox, without redeliveries: results arrive in task order, so
        one that is not newer than all before it is a redelivery."""
        if not self._inbox:
            return None
        rows = pa.concat_batches(list(self._inbox))
        self._inbox.clear()
        self._inbox_rows = 0
        task_id = batches.column(rows, "task_id")
        newest_before = np.maximum.accumulate(np.concatenate(([self._last_task], task_id)))
        self._last_task = int(newest_before[-1])
        rows = rows.filter(pa.array(task_id > newest_before[:-1]))
        return rows.slice(max(rows.num_rows - limit, 0)) if rows.num_rows else None

    @abstractmethod
    async def _prepare(self) -> None: ...

    @abstractmethod
    async def _train(self) -> int:
        """Train for a moment; returns the number of training steps."""

    @abstractmethod
    def _continue_from(self, body: bytes) -> None:
        """Continue from the model that was rolled back to."""


class ForestTraining(TrainingLoop):
    name = FOREST
    model_format = "onnx"

    def __init__(self, record: RunRecord, bus: Bus, store: Store, metrics: Metrics) -> None:
        super().__init__(record, bus, store, metrics)
        self._learner = ForestLearner(record.spec)
        self._session: tuple[int, InferenceSession] | None = None

    async def _prepare(self) -> None:
        await self._publisher.load(open_model)
        labelled = None
        if self._spec.learning.pretrain_tasks:
            labelled = forest.label(pretraining_tasks(self._spec), self._spec)
            self._learner.fill_window(labelled)
        if self._publisher.in_service.version or labelled is None:
            await self._restore_window()
            return
        body = await asyncio.to_thread(forest.fit, labelled, self._spec)
        reason = f"pre-trained on {len(labelled)} generated tasks"
        await self._publisher.publish(body, TrainingWindow(len(labelled)), reason)

    async def _restore_window(self) -> None:
        stored = await asyncio.to_thread(
            stored_results.oracle_window,
            self._store,
            self._publisher.run,
            self._spec.learning.forest.window,
        )
        if stored is not None:
            self._learner.add(stored, None)
            self._last_task = int(stored.tasks.task_id[-1])
            if self._publisher.in_service.version:
                self._learner.results_since_fit = 0  # the model in service was fitted on them

    def _continue_from(self, body: bytes) -> None:
        """Nothing to do: the next challenger is compared with the model in service."""

    async def _train(self) -> int:
        if (rows := self._received(self._spec.learning.forest.window)) is not None:
            await asyncio.to_thread(self._add_results, rows)
        if not self._learner.fit_is_due():
            return 0
        window, drifted = self._learner.start_fit()
        champion = self._publisher.in_service.body
        result = await asyncio.to_thread(forest.challenge, window, champion, self._spec)
        metrics = {"score": result.score}
        if result.champion_score is not None:
            metrics["champion_score"] = result.champion_score
        reason = ("drift: " if drifted else "") + result.reason
        task_id = result.trained_on.tasks.task_id
        fitted = TrainingWindow(len(task_id), int(task_id[0]), int(task_id[-1]))
        publish = self._publisher.publish if result.accepted else self._publisher.keep_back
        await publish(result.body, fitted, reason, metrics)
        return 1

    def _add_results(self, rows: pa.RecordBatch) -> None:
        labelled = LabelledTasks(batches.tasks_of(rows), batches.column(rows, "gpu_fraction"))
        self._learner.add(labelled, self._champion())

    def _champion(self) -> InferenceSession | None:
        model = self._publisher.in_service
        if model.body is None:
            return None
        if self._session is None or self._session[0] != model.version:
            self._session = (model.version, open_model(model.body))
        return self._session[1]


class AgentTraining(TrainingLoop):
    name = AGENT
    model_format = "safetensors"

    def __init__(self, record: RunRecord, bus: Bus, store: Store, metrics: Metrics) -> None:
        super().__init__(record, bus, store, metrics)
        self._pretraining_tasks = pretraining_tasks(record.spec)
        self._dqn = Dqn(record.spec, self._pretraining_tasks)
        self._steps_due = 0.0
        self._steps_since_publish = 0

    async def _prepare(self) -> None:
        await self._publisher.load(self._dqn.restore)
        if self._publisher.in_service.version:
            await self._restore_replay()
        elif self._spec.learning.pretrain_tasks:
            await asyncio.to_thread(self._dqn.pretrain, self._pretraining_tasks)
            count = len(self._pretraining_tasks)
            await self._publish(f"pre-trained on {count} generated tasks", TrainingWindow(count))

    async def _restore_replay(self) -> None:
        limit = self._spec.learning.agent.replay
        stored = await asyncio.to_thread(
            stored_results.agent_results, self._store, self._publisher.run, AGENT, limit
        )
        if stored is not None:
            self._dqn.add_results(stored)
            self._last_task = int(stored.tasks.task_id[-1])

    def _continue_from(self, body: bytes) -> None:
        self._dqn.restore(body)

    async def _train(self) -> int:
        rows = self._received(self._spec.learning.agent.replay)
        if rows is None and self._steps_due < 1:
            return 0
        steps = await asyncio.to_thread(self._train_dqn, rows)
        self._steps_since_publish += steps
        surprised = not self._dqn.calm
        if self._publisher.in_service.version == 0 and self._last_task >= 0:
            # A cold start: publish the untrained model, which explores.
            await self._publish("the first model, untrained", self._window())
        elif surprised or self._steps_since_publish >= self._spec.learning.agent.ship_every:
            prefix = "surprised: " if surprised else ""
            reason = f"{prefix}after {self._steps_since_publish} more learning steps"
            await self._publish(reason, self._window())
        return steps

    def _train_dqn(self, rows: pa.RecordBatch | None) -> int:
        if rows is not None:
            self._add_results(rows)
        limit = STEPS_PER_TURN if self._dqn.calm else STEPS_PER_TURN_SURPRISED
        steps = min(int(self._steps_due), limit)
        self._steps_due -= steps
        self._dqn.train(steps)
        return steps

    def _add_results(self, rows: pa.RecordBatch) -> None:
        steps = self._dqn.add_results(
            Results(
                tasks=batches.tasks_of(rows),
                share=batches.column(rows, "gpu_fraction"),
                device=batches.column(rows, "device"),
                time=batches.column(rows, "time"),
                energy=batches.column(rows, "energy"),
            )
        )
        self._steps_due = min(self._steps_due + steps, MAX_STEPS_DUE)

    def _window(self) -> TrainingWindow:
        replay = self._dqn.replay
        return TrainingWindow(len(replay), *replay.task_range())

    async def _publish(self, reason: str, window: TrainingWindow) -> None:
        metrics = {"loss": self._dqn.loss, "steps": float(self._dqn.steps)}
        await self._publisher.publish(self._dqn.weights(), window, reason, metrics)
        self._steps_since_publish = 0


TRAINING_LOOPS: dict[str, type[TrainingLoop]] = {FOREST: ForestTraining, AGENT: AgentTraining}


def pretraining_tasks(spec: RunSpec) -> Tasks:
    """Generated tasks of the run's workload, without its drift: a learner cannot know either the
    tasks or the changes to come."""
    workload = spec.workload.model_copy(update={"drift": ()})
    seed = (spec.seed + PRETRAIN_SEED) % 2**63
    other = spec.model_copy(update={"seed": seed, "workload": workload})
    tasks, _ = generate(other, Cursor(), max(spec.learning.pretrain_tasks, 100))
    return tasks
