"""One run's learners and their models: prepare, take results in, learn, ship.

Nothing here is lost with the process: results are in ClickHouse, models on the bus. A trainer that
comes back reads both and goes on with the next version.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import onnxruntime
import pyarrow as pa

from services.trainer import forest, memory
from services.trainer.dqn import Dqn
from services.trainer.forest import ForestLearner, Labelled, Verdict
from shared import batches, models
from shared.bus import Bus
from shared.errors import Conflict
from shared.events import Event
from shared.logs import logger
from shared.models import AGENT, FOREST, Manifest, Model
from shared.runs import RunRecord
from shared.spec import RunSpec
from shared.store.client import Store
from shared.tasks import Tasks
from shared.workload import Cursor, generate

# Pre-training tasks come from another seed than the run's own, or it would know the future.
PRETRAIN_SEED = 0x5EED
# Steps that are due but not done yet are forgotten beyond this: the learner never falls behind.
MOST_STEPS_DUE = 1000
STEPS_AT_ONCE = 50
IDLE_SECONDS = 0.1

Result = TypeVar("Result")

log = logger()


@dataclass(slots=True)
class Shipped:
    """The model in service, as the trainer knows it."""

    version: int = 0
    sequence: int = 0
    body: bytes | None = None


class Yard:
    """Ships models of one learner in one run, and tells about them."""

    def __init__(self, bus: Bus, run: str, name: str) -> None:
        self._bus = bus
        self.run = run
        self.name = name
        self.in_service = Shipped()

    async def load(self) -> None:
        if newest := await models.newest(self._bus, self.run, self.name):
            self.in_service = Shipped(newest.manifest.version, newest.sequence, newest.body)

    async def ship(
        self,
        body: bytes,
        kind: Literal["onnx", "safetensors"],
        *,
        trained_on: Tasks,
        reason: str,
        metrics: dict[str, float] | None = None,
        generated: bool = False,
    ) -> None:
        manifest = self._manifest(body, kind, trained_on, reason, metrics or {}, generated)
        try:
            sequence = await models.ship(self._bus, manifest, body, after=self.in_service.sequence)
        except Conflict:  # a rollback, or another trainer: judge the next one against that
            await self.load()
            return
        self.in_service = Shipped(manifest.version, sequence, body)
        await self.tell(manifest, shipped=True)

    async def pass_over(
        self, body: bytes, trained_on: Tasks, reason: str, metrics: dict[str, float]
    ) -> None:
        """A challenger that does not ship is told about all the same."""
        await self.tell(self._manifest(body, "onnx", trained_on, reason, metrics, False), False)

    async def roll_back(self, number: int) -> Model:
        """Put an older version into service again, as a new version: versions only rise."""
        old = await models.version(self._bus, self.run, self.name, number)
        manifest = old.manifest.model_copy(
            update={
                "version": self.in_service.version + 1,
                "reason": f"rolled back to version {number}",
                "created_at": time.time(),
            }
        )
        sequence = await models.ship(self._bus, manifest, old.body, after=self.in_service.sequence)
        self.in_service = Shipped(manifest.version, sequence, old.body)
        await self.tell(manifest, shipped=True)
        return Model(manifest, old.body, sequence)

    def _manifest(
        self,
        body: bytes,
        kind: Literal["onnx", "safetensors"],
        trained_on: Tasks,
        reason: str,
        metrics: dict[str, float],
        generated: bool,
    ) -> Manifest:
        return Manifest(
            run=self.run,
            name=self.name,
            version=self.in_service.version + 1,
            sha256=models.digest(body),
            format=kind,
            trained_on=len(trained_on),
            first_task=-1 if generated else int(trained_on.task_id[0]),
            last_task=-1 if generated else int(trained_on.task_id[-1]),
            metrics=metrics,
            reason=reason,
        )

    async def tell(self, manifest: Manifest, shipped: bool) -> None:
        done = "shipped" if shipped else "kept back"
        event = Event(
            kind="model",
            service=self._bus.service,
            run=self.run,
            at=manifest.created_at,
            message=f"{self.name} version {manifest.version} {done}: {manifest.reason}",
            data={"manifest": manifest.model_dump(), "shipped": shipped},
        )
        unique = f"{self.run}.{self.name}.{manifest.version}.{done}.{manifest.created_at}"
        await self._bus.tell(event, message_id=f"event.model.{unique}")


class ForestLearning:
    def __init__(self, record: RunRecord, bus: Bus, store: Store) -> None:
        self._spec = record.spec
        self._store = store
        self._yard = Yard(bus, record.run, FOREST)
        self._learner = ForestLearner(record.spec)
        self._session: tuple[int, onnxruntime.InferenceSession] | None = None
        self._share = bus.settings.trainer_share

    async def prepare(self) -> None:
        await self._yard.load()
        if self._yard.in_service.version or not self._spec.learning.pretrain_tasks:
            await self._recall()
        else:
            tasks = practice(self._spec)
            labelled = forest.generated(tasks, self._spec)
            body = await asyncio.to_thread(forest.fit, labelled, self._spec)
            reason = f"pre-trained on {len(tasks)} generated tasks"
            await self._yard.ship(body, "onnx", trained_on=tasks, reason=reason, generated=True)

    async def _recall(self) -> None:
        window = self._spec.learning.forest.window
        known = await asyncio.to_thread(memory.oracle_window, self._store, self._yard.run, window)
        if known is not None:
            self._learner.add(known, None)
            if self._yard.in_service.version:
                self._learner.fresh = 0  # these were fitted on before

    async def roll_back(self, number: int) -> Manifest:
        """The next challenger is held against that version."""
        return (await self._yard.roll_back(number)).manifest

    def add(self, rows: pa.RecordBatch) -> None:
        labelled = Labelled(batches.tasks_of(rows), batches.column(rows, "gpu_fraction"))
        self._learner.add(labelled, self._champion())

    def _champion(self) -> onnxruntime.InferenceSession | None:
        serving = self._yard.in_service
        if serving.body is None:
            return None
        if self._session is None or self._session[0] != serving.version:
            self._session = (serving.version, forest.open_model(serving.body))
        return self._session[1]

    async def learn(self) -> None:
        while True:
            if not self._learner.due():
                await asyncio.sleep(IDLE_SECONDS)
                continue
            window, drifted = self._learner.begin()
            verdict = await at_most(
                self._share, forest.judge, window, self._yard.in_service.body, self._spec
            )
            await self._settle(verdict, drifted)

    async def _settle(self, verdict: Verdict, drifted: bool) -> None:
        metrics = {"score": verdict.challenger}
        if verdict.champion is not None:
            metrics["champion_score"] = verdict.champion
        reason = ("drift: " if drifted else "") + verdict.reason
        tasks = verdict.trained_on.tasks
        if verdict.ships:
            await self._yard.ship(
                verdict.body, "onnx", trained_on=tasks, reason=reason, metrics=metrics
            )
        else:
            await self._yard.pass_over(verdict.body, tasks, reason, metrics)


class AgentLearning:
    def __init__(self, record: RunRecord, bus: Bus, store: Store) -> None:
        self._spec = record.spec
        self._store = store
        self._yard = Yard(bus, record.run, AGENT)
        self._dqn: Dqn | None = None
        self._share = bus.settings.trainer_share
        self._due = 0.0
        self._last_task = -1
        self._newest: Tasks | None = None

    async def prepare(self) -> None:
        await self._yard.load()
        tasks = practice(self._spec)
        self._dqn = dqn = Dqn(self._spec, tasks)
        if self._yard.in_service.body is not None:
            dqn.restore(self._yard.in_service.body)
            await self._recall(dqn)
        elif self._spec.learning.pretrain_tasks:
            await asyncio.to_thread(dqn.pretrain, tasks)
            reason = f"pre-trained on {len(tasks)} generated tasks"
            await self._ship(dqn, tasks, reason, generated=True)

    async def _recall(self, dqn: Dqn) -> None:
        limit = self._spec.learning.agent.replay
        known = await asyncio.to_thread(
            memory.agent_results, self._store, self._yard.run, AGENT, limit
        )
        if known is not None:
            dqn.remember(*known)
            self._last_task = int(known[0].task_id[-1])

    async def roll_back(self, number: int) -> Manifest:
        """Learning goes on from the weights of that version."""
        assert self._dqn is not None
        model = await self._yard.roll_back(number)
        self._dqn.restore(model.body)
        return model.manifest

    def add(self, rows: pa.RecordBatch) -> None:
        assert self._dqn is not None
        tasks = batches.tasks_of(rows)
        if tasks.task_id[-1] <= self._last_task:
            return  # seen before: a redelivery
        self._last_task = int(tasks.task_id[-1])
        self._newest = tasks
        share, gpu = batches.column(rows, "gpu_fraction"), batches.column(rows, "gpu")
        time_, energy = batches.column(rows, "time"), batches.column(rows, "energy")
        asked = self._dqn.remember(tasks, share, gpu, time_, energy)
        self._due = min(self._due + asked, MOST_STEPS_DUE)

    async def learn(self) -> None:
        assert self._dqn is not None
        dqn, rule = self._dqn, self._spec.learning.agent
        since = 0
        while True:
            if self._newest is not None and self._yard.in_service.version == 0:
                # A cold start: the first model knows nothing yet and explores all the more.
                await self._ship(dqn, self._newest, "the first model, untrained")
            steps = min(int(self._due), STEPS_AT_ONCE)
            if steps == 0:
                await asyncio.sleep(IDLE_SECONDS)
                continue
            self._due -= steps
            await at_most(self._share, dqn.learn, steps)
            since += steps
            if since >= rule.ship_every and self._newest is not None:
                await self._ship(dqn, self._newest, f"after {since} more learning steps")
                since = 0

    async def _ship(self, dqn: Dqn, tasks: Tasks, reason: str, generated: bool = False) -> None:
        metrics = {"loss": dqn.loss, "steps": float(dqn.steps)}
        await self._yard.ship(
            dqn.weights(),
            "safetensors",
            trained_on=tasks,
            reason=reason,
            metrics=metrics,
            generated=generated,
        )


def practice(spec: RunSpec) -> Tasks:
    """Generated tasks of the run's own workload, but not the ones that will come."""
    other = spec.model_copy(update={"seed": (spec.seed + PRETRAIN_SEED) % 2**63})
    tasks, _ = generate(other, Cursor(), max(spec.learning.pretrain_tasks, 100))
    return tasks


async def at_most(share: float, work: Callable[..., Result], *arguments: Any) -> Result:
    """Do work in a thread, then rest, so that it takes no more than that share of the time."""
    started = time.perf_counter()
    result = await asyncio.to_thread(work, *arguments)
    await asyncio.sleep((time.perf_counter() - started) * (1 / share - 1))
    return result
