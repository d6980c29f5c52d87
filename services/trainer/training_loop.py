"""Trains one learner in one run: pre-trains it, collects results, publishes models.

A restarted trainer continues: it reads models from the bus and results from ClickHouse, and makes
the next version.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod

import onnxruntime
import pyarrow as pa
import safetensors.numpy

from services.trainer import forked_models, stored_results
from services.trainer.challenge import Challenge, challenge
from services.trainer.learner import Learner, Results, Update
from services.trainer.metrics import Metrics
from services.trainer.model_publisher import ModelPublisher, TrainingWindow
from services.trainer.pretraining import pretraining_tasks
from shared.bus.client import Bus
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks
from shared.messages.models import Manifest
from shared.messages.runs import RunRecord
from shared.store.client import Store


class TrainingLoop(ABC):
    """Results may arrive at any time; one lock covers training, publishing and rollbacks."""

    def __init__(
        self, record: RunRecord, learner: Learner, bus: Bus, store: Store, metrics: Metrics
    ) -> None:
        self._run, self._spec = record.run, record.spec
        self._fork = record.fork
        self._learner = learner
        self._teacher = learner.learns_from or learner.name
        self._store = store
        self._metrics = metrics
        self._publisher = ModelPublisher(
            bus, record.run, learner.name, learner.model_format, metrics
        )
        self._objective_changed = False
        self.suspended = frozenset(record.suspended)  # schedulers; renewed while the run goes on
        self._lock = asyncio.Lock()
        self._prepared = asyncio.Event()

    @abstractmethod
    def add(self, scheduler: str, rows: pa.RecordBatch) -> None:
        """Results of the learner's own scheduler, or of the one that it learns from."""

    @abstractmethod
    def take_results_of(self, failed: TrainingLoop) -> None:
        """Take over from the loop that this one replaces: its results are acknowledged, so they are
        not redelivered."""

    def set_objective(self, spec: RunSpec) -> None:
        """Learn for another objective from the next model on, if it has changed."""
        if spec.objective != self._spec.objective:
            self._spec, self._learner = spec, type(self._learner)(spec)
            self._objective_changed = True

    async def prepare(self) -> None:
        """Pre-train and publish the first model; after a restart, load what is stored."""
        async with self._lock:
            await self._publisher.load(self._open)
            if self._publisher.in_service.version == 0:
                await self._publish_first()
            else:
                await self._restore()
            await self._publish_missing_event()
        self._prepared.set()

    async def _publish_first(self) -> None:
        """The first model of this run; in a fork, the parent's or one in its place."""
        if self._fork is not None and self._fork.at:
            await forked_models.begin(
                self._publisher, self._store, self._fork, self._spec, self._pretrain
            )
            await self._restore()
        elif self._spec.learning.pretrain_tasks:
            await self._pretrain()
        else:
            await self._restore()

    @property
    def _first_task(self) -> int:
        """The first task to learn from. A learner that does not continue with the parent's models
        learns from no task of the parent, which may have other devices."""
        fork = self._fork
        return 0 if fork is None else fork.learners.get(self._learner.name, fork.at)

    async def _pretrain(self) -> None:
        tasks = pretraining_tasks(self._spec)
        update = await self._first_model(tasks)
        if update is not None:
            trained_on = len(tasks) if update.body else 0
            reason = f"pre-trained on {trained_on} generated tasks" if trained_on else update.reason
            window = TrainingWindow(trained_on)
            await self._publisher.publish(update.body, window, reason, update.metrics)

    async def _first_model(self, tasks: Tasks) -> Update | None:
        return await asyncio.to_thread(self._learner.pretrain, tasks)

    @abstractmethod
    async def _restore(self) -> None:
        """After a restart, or without pre-training: find the results that the next model needs."""

    async def _publish_missing_event(self) -> None:
        """A trainer that was killed may have published a model without its event."""
        newest = self._publisher.newest
        if newest and not await asyncio.to_thread(stored_results.has_model, self._store, newest):
            await self._publisher.publish_event(newest, shipped=True)

    async def train(self) -> None:
        """Make models until the run ends."""
        while True:
            started = time.perf_counter()
            async with self._lock:
                learned = await self._train()
            seconds = time.perf_counter() - started
            if learned:
                self._metrics.steps.labels(self._learner.name).inc()
                self._metrics.seconds.labels(self._learner.name).inc(seconds)
            await self._pause(seconds if learned else 0.0)

    @abstractmethod
    async def _train(self) -> bool:
        """Make the next model if it is due; returns whether it was."""

    @abstractmethod
    async def _pause(self, seconds: float) -> None:
        """Pause after a round that took these seconds; 0: there was nothing to do."""

    async def roll_back(self, version: int) -> Manifest:
        await self._prepared.wait()
        async with self._lock:
            return (await self._publisher.roll_back(version)).manifest

    def _open(self, body: bytes) -> None:
        """Raise if the bytes are no model."""
        if self._learner.model_format == "onnx":
            onnxruntime.InferenceSession(body, providers=["CPUExecutionProvider"])
        else:
            safetensors.numpy.load(body)

    def _challenge(self, results: Results, new: int) -> Challenge | None:
        """The next model; None: there is nothing to learn from."""
        champion = self._publisher.in_service
        return challenge(self._learner, champion.body, results, new, champion.version + 1)
