"""One run's learners: prepare, take results in, learn, ship.

Nothing here is lost with the process: results are in ClickHouse, models on the bus. A trainer that
comes back reads both and goes on with the next version.
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

from services.trainer import forest, memory
from services.trainer.dqn import Dqn, Results
from services.trainer.forest import ForestLearner, Labelled
from services.trainer.metrics import Metrics
from services.trainer.yard import Window, Yard
from shared import batches
from shared.bus import Bus
from shared.forest import open_model
from shared.models import AGENT, FOREST, Manifest
from shared.runs import RunRecord
from shared.spec import RunSpec
from shared.store.client import Store
from shared.tasks import Tasks
from shared.workload import Cursor, generate

# Pre-training tasks come from another seed than the run's own, or it would know the future.
PRETRAIN_SEED = 0x5EED
# A learner never falls behind: what it has no time for is forgotten, the oldest first.
INBOX_ROWS = 100_000
MOST_STEPS_DUE = 1000
STEPS_AT_ONCE = 50
# After a surprise every task counts: it ships whatever it has learned in between.
STEPS_WHEN_SURPRISED = 15
IDLE_SECONDS = 0.1


class Learning(ABC):
    """Results come in at any time; learning, shipping and rolling back take turns."""

    name: ClassVar[str]
    format: ClassVar[Literal["onnx", "safetensors"]]

    def __init__(self, record: RunRecord, bus: Bus, store: Store, metrics: Metrics) -> None:
        self._spec = record.spec
        self._store = store
        self._metrics = metrics
        self._yard = Yard(bus, record.run, self.name, self.format, metrics)
        self._inbox: deque[pa.RecordBatch] = deque()
        self._waiting = 0  # rows in it
        self._last_task = -1  # newest result that was taken in
        self._share = bus.settings.trainer_share
        self._turn = asyncio.Lock()
        self._prepared = asyncio.Event()

    def add(self, rows: pa.RecordBatch) -> None:
        self._inbox.append(rows)
        self._waiting += rows.num_rows
        while self._waiting > INBOX_ROWS:
            self._waiting -= self._inbox.popleft().num_rows

    def take_over(self, failed: Learning) -> None:
        """Its results are acknowledged: nobody would bring them again."""
        self._inbox, self._waiting = failed._inbox, failed._waiting

    async def prepare(self) -> None:
        """Pre-train and ship the first model; after a restart, remember instead."""
        async with self._turn:
            await self._prepare()
            await self._yard.tell_of_newest(self._is_known)
        self._prepared.set()

    async def _is_known(self, version: int) -> bool:
        run, name = self._yard.run, self._yard.name
        return await asyncio.to_thread(memory.knows_model, self._store, run, name, version)

    async def learn(self) -> None:
        """Work whenever there is something to learn, for the trainer's share of the time."""
        while True:
            began = time.perf_counter()
            async with self._turn:
                steps = await self._work()
            spent = time.perf_counter() - began
            if steps:
                self._metrics.steps.labels(self.name).inc(steps)
                self._metrics.seconds.labels(self.name).inc(spent)
            await asyncio.sleep(spent * (1 / self._share - 1) if steps else IDLE_SECONDS)

    async def roll_back(self, number: int) -> Manifest:
        await self._prepared.wait()
        async with self._turn:
            return await self._roll_back(number)

    def _received(self, most: int) -> pa.RecordBatch | None:
        """The newest results since the last look, each once: results come in task order, so what
        is not newer than all before it is a redelivery."""
        if not self._inbox:
            return None
        rows = pa.concat_batches(list(self._inbox))
        self._inbox.clear()
        self._waiting = 0
        tasks = batches.column(rows, "task_id")
        before = np.maximum.accumulate(np.concatenate(([self._last_task], tasks)))
        self._last_task = int(before[-1])
        rows = rows.filter(pa.array(tasks > before[:-1]))
        return rows.slice(max(rows.num_rows - most, 0)) if rows.num_rows else None

    @abstractmethod
    async def _prepare(self) -> None: ...

    @abstractmethod
    async def _work(self) -> int:
        """Do a piece of work; how many steps of learning it had."""

    @abstractmethod
    async def _roll_back(self, number: int) -> Manifest: ...


class ForestLearning(Learning):
    name = FOREST
    format = "onnx"

    def __init__(self, record: RunRecord, bus: Bus, store: Store, metrics: Metrics) -> None:
        super().__init__(record, bus, store, metrics)
        self._learner = ForestLearner(record.spec)
        self._session: tuple[int, InferenceSession] | None = None

    async def _prepare(self) -> None:
        await self._yard.load(open_model)
        known = None
        if self._spec.learning.pretrain_tasks:
            known = forest.generated(practice(self._spec), self._spec)
            self._learner.begin_with(known)
        if self._yard.in_service.version or known is None:
            await self._recall()
            return
        body = await asyncio.to_thread(forest.fit, known, self._spec)
        reason = f"pre-trained on {len(known)} generated tasks"
        await self._yard.ship(body, Window(len(known)), reason)

    async def _recall(self) -> None:
        window = self._spec.learning.forest.window
        known = await asyncio.to_thread(memory.oracle_window, self._store, self._yard.run, window)
        if known is not None:
            self._learner.add(known, None)
            self._last_task = int(known.tasks.task_id[-1])
            if self._yard.in_service.version:
                self._learner.fresh = 0  # these were fitted on before

    async def _roll_back(self, number: int) -> Manifest:
        """The next challenger is held against that version."""
        return (await self._yard.roll_back(number)).manifest

    async def _work(self) -> int:
        if (rows := self._received(self._spec.learning.forest.window)) is not None:
            await asyncio.to_thread(self._take_in, rows)
        if not self._learner.due():
            return 0
        window, drifted = self._learner.begin()
        champion = self._yard.in_service.body
        verdict = await asyncio.to_thread(forest.judge, window, champion, self._spec)
        metrics = {"score": verdict.challenger}
        if verdict.champion is not None:
            metrics["champion_score"] = verdict.champion
        reason = ("drift: " if drifted else "") + verdict.reason
        fitted = window_of(verdict.trained_on.tasks)
        settle = self._yard.ship if verdict.ships else self._yard.pass_over
        await settle(verdict.body, fitted, reason, metrics)
        return 1

    def _take_in(self, rows: pa.RecordBatch) -> None:
        labelled = Labelled(batches.tasks_of(rows), batches.column(rows, "gpu_fraction"))
        self._learner.add(labelled, self._champion())

    def _champion(self) -> InferenceSession | None:
        serving = self._yard.in_service
        if serving.body is None:
            return None
        if self._session is None or self._session[0] != serving.version:
            self._session = (serving.version, open_model(serving.body))
        return self._session[1]


class AgentLearning(Learning):
    name = AGENT
    format = "safetensors"

    def __init__(self, record: RunRecord, bus: Bus, store: Store, metrics: Metrics) -> None:
        super().__init__(record, bus, store, metrics)
        self._practice = practice(record.spec)
        self._dqn = Dqn(record.spec, self._practice)
        self._due = 0.0
        self._since = 0  # steps since the last shipment

    async def _prepare(self) -> None:
        await self._yard.load(self._dqn.restore)
        if self._yard.in_service.version:
            await self._recall()
        elif self._spec.learning.pretrain_tasks:
            await asyncio.to_thread(self._dqn.pretrain, self._practice)
            reason = f"pre-trained on {len(self._practice)} generated tasks"
            await self._ship(reason, Window(len(self._practice)))

    async def _recall(self) -> None:
        limit = self._spec.learning.agent.replay
        known = await asyncio.to_thread(
            memory.agent_results, self._store, self._yard.run, AGENT, limit
        )
        if known is not None:
            self._dqn.remember(known)
            self._last_task = int(known.tasks.task_id[-1])

    async def _roll_back(self, number: int) -> Manifest:
        """Learning goes on from the weights of that version."""
        model = await self._yard.roll_back(number)
        self._dqn.restore(model.body)
        return model.manifest

    async def _work(self) -> int:
        rows = self._received(self._spec.learning.agent.replay)
        if rows is None and self._due < 1:
            return 0
        steps = await asyncio.to_thread(self._study, rows)
        self._since += steps
        surprised = not self._dqn.calm
        if self._yard.in_service.version == 0 and self._last_task >= 0:
            # A cold start: the first model knows nothing yet and explores all the more.
            await self._ship("the first model, untrained", self._window())
        elif surprised or self._since >= self._spec.learning.agent.ship_every:
            why = "surprised: " if surprised else ""
            await self._ship(f"{why}after {self._since} more learning steps", self._window())
        return steps

    def _study(self, rows: pa.RecordBatch | None) -> int:
        if rows is not None:
            self._take_in(rows)
        steps = min(int(self._due), STEPS_AT_ONCE if self._dqn.calm else STEPS_WHEN_SURPRISED)
        self._due -= steps
        self._dqn.learn(steps)
        return steps

    def _take_in(self, rows: pa.RecordBatch) -> None:
        asked = self._dqn.remember(
            Results(
                tasks=batches.tasks_of(rows),
                share=batches.column(rows, "gpu_fraction"),
                gpu=batches.column(rows, "gpu"),
                time=batches.column(rows, "time"),
                energy=batches.column(rows, "energy"),
                failed=batches.column(rows, "status") == "failed",
            )
        )
        self._due = min(self._due + asked, MOST_STEPS_DUE)

    def _window(self) -> Window:
        replay = self._dqn.replay
        return Window(len(replay), *replay.tasks())

    async def _ship(self, reason: str, window: Window) -> None:
        metrics = {"loss": self._dqn.loss, "steps": float(self._dqn.steps)}
        await self._yard.ship(self._dqn.weights(), window, reason, metrics)
        self._since = 0


LEARNINGS: dict[str, type[Learning]] = {FOREST: ForestLearning, AGENT: AgentLearning}


def window_of(tasks: Tasks) -> Window:
    return Window(len(tasks), int(tasks.task_id[0]), int(tasks.task_id[-1]))


def practice(spec: RunSpec) -> Tasks:
    """Generated tasks of the run's own workload, but not the ones that will come, and not of what
    the workload will change to: nobody knows that beforehand."""
    workload = spec.workload.model_copy(update={"drift": ()})
    seed = (spec.seed + PRETRAIN_SEED) % 2**63
    other = spec.model_copy(update={"seed": seed, "workload": workload})
    tasks, _ = generate(other, Cursor(), max(spec.learning.pretrain_tasks, 100))
    return tasks
