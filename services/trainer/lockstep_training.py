"""Training in step with the stream: each version is made from exactly the results that
`shared.domain.learning.lockstep` says, in task order: the same run gives the same models."""

from __future__ import annotations

import asyncio

import pyarrow as pa

from services.trainer import stored_results
from services.trainer.challenge import Challenge
from services.trainer.learner import Learner, Results, Update
from services.trainer.metrics import Metrics
from services.trainer.model_publisher import TrainingWindow
from services.trainer.result_window import ResultWindow
from services.trainer.training_loop import TrainingLoop
from shared.bus.client import Bus
from shared.domain.learning.lockstep import first_decided, learned_before
from shared.domain.tasks import Tasks
from shared.errors import NotAllowed
from shared.messages.models import NO_MODEL, Manifest
from shared.messages.runs import RunRecord
from shared.runtime.logs import logger
from shared.store.client import Store

# Results that were acknowledged before a restart, or dropped, are read from ClickHouse: when
# nothing has arrived for this long.
STORE_SECONDS = 0.5
# Results read from ClickHouse at once, and kept ahead of what the next version needs: the scheduler
# to learn from may be far ahead of the one that learns.
MOST_ROWS = 20_000
# A model that cannot be made is tried this often; then the one before stays.
ATTEMPTS = 3

log = logger()


class LockstepTraining(TrainingLoop):
    def __init__(
        self, record: RunRecord, learner: Learner, bus: Bus, store: Store, metrics: Metrics
    ) -> None:
        super().__init__(record, learner, bus, store, metrics)
        self._window = ResultWindow(learner.window + 2 * MOST_ROWS)
        self._early: dict[int, pa.RecordBatch] = {}  # by their first task
        self._own_next_task = 0  # of the learner's own scheduler
        self._arrived = asyncio.Event()
        self._failures = 0
        self._all_stored = False  # whether a suspended teacher has no more results

    def add(self, scheduler: str, rows: pa.RecordBatch) -> None:
        first = rows.column("task_id")[0].as_py()
        if scheduler == self._learner.name:
            self._own_next_task = max(self._own_next_task, first + rows.num_rows)
        if scheduler == self._teacher and first + rows.num_rows > self._window.next_task:
            self._all_stored = False
            early = sum(each.num_rows for each in self._early.values())
            if first <= self._window.next_task or early < MOST_ROWS:
                self._early[first] = rows
        self._arrived.set()

    def take_results_of(self, failed: TrainingLoop) -> None:
        """Nothing to do: missing results are read from ClickHouse."""

    async def roll_back(self, version: int) -> Manifest:
        raise NotAllowed(
            f"run {self._run} learns in lockstep: which version decides a task follows from the "
            "task, so no other can be put into service"
        )

    async def _first_model(self, tasks: Tasks) -> Update | None:
        """Always one: the run waits for it, and must not wait for a learner that fails."""
        try:
            update = await super()._first_model(tasks)
        except Exception as error:
            log.warning("pre-training failed", run=self._run, error=repr(error))
            return Update(NO_MODEL, f"no model yet: pre-training failed: {error!r}"[:500])
        return update or Update(NO_MODEL, "no model yet: pre-training made none")

    async def _restore(self) -> None:
        needed = learned_before(self._next_version, self._spec)
        self._window.next_task = max(needed - self._learner.window, self._first_task)

    @property
    def _next_version(self) -> int:
        return self._publisher.in_service.version + 1

    async def _train(self) -> bool:
        version, spec = self._next_version, self._spec
        if spec.tasks is not None and first_decided(version, spec) >= spec.tasks:
            return False  # no task needs it
        end = learned_before(version, spec)
        teacher_takes_part = self._teacher in spec.schedulers
        if teacher_takes_part and not self._collect(end):
            # Once all stored results of a suspended teacher are taken, there are no more.
            if not self._all_stored:
                return False
            teacher_takes_part = False
        if self._own_next_task < end:
            return False
        try:
            challenge = None
            if teacher_takes_part and end > self._first_task:
                results = await asyncio.to_thread(self._window.before, end, self._learner.window)
                challenge = await asyncio.to_thread(
                    self._challenge, results, spec.learning.lockstep_tasks
                )
        except Exception as error:
            log.warning("a model cannot be made", run=self._run, error=repr(error))
            self._failures += 1
            if self._failures < ATTEMPTS:
                return False
            await self._publish_again(f"learning failed: {error!r}")
        else:
            await self._publish(challenge)
        self._failures = 0
        return True

    async def _publish(self, challenge: Challenge | None) -> None:
        if challenge is None:
            await self._publish_again("there is nothing to learn from")
        elif challenge.accepted:
            body, reason = challenge.update.body, challenge.reason
            await self._publisher.publish(body, challenge.window, reason, challenge.metrics)
        else:
            await self._publish_again(challenge.reason, challenge.window, challenge.metrics)

    async def _publish_again(
        self,
        reason: str,
        window: TrainingWindow | None = None,
        metrics: dict[str, float] | None = None,
    ) -> None:
        """Every segment has its version, even if it is the same model, or none."""
        body = self._publisher.in_service.body or NO_MODEL
        reason = f"{'the model before stays' if body else 'no model yet'}: {reason}"[:500]
        await self._publisher.publish(body, window or TrainingWindow(0), reason, metrics)

    async def _pause(self, seconds: float) -> None:
        """Until results arrive; after a while without any, those in the store are read."""
        if seconds:
            return
        try:
            await asyncio.wait_for(self._arrived.wait(), STORE_SECONDS)
        except TimeoutError:
            await self._read_store()
        self._arrived.clear()

    def _collect(self, end: int) -> bool:
        """Move arrived results into the window. Returns whether all before `end` are there."""
        window = self._window
        while early := [first for first in self._early if first <= window.next_task]:
            window.add(stored_results.results_of(self._early.pop(min(early))))
        return window.next_task >= end

    async def _read_store(self) -> None:
        end = learned_before(self._next_version, self._spec)
        first = self._window.next_task
        if first < end and self._teacher in self._spec.schedulers:
            stored = await self._read(self._teacher, first, first + MOST_ROWS)
            if stored is not None:
                self._window.add(_without_gaps(stored, first))
            suspended = self._teacher in self.suspended
            self._all_stored = suspended and stored is None and not self._early
        if self._own_next_task < end:
            own = await self._read(self._learner.name, end - 1, end)
            self._own_next_task = max(self._own_next_task, 0 if own is None else end)

    async def _read(self, scheduler: str, first: int, end: int) -> Results | None:
        return await asyncio.to_thread(
            stored_results.read_results,
            self._store,
            self._run,
            scheduler,
            end - first,
            first=first,
            end=end,
        )


def _without_gaps(results: Results, first: int) -> Results:
    """The results from task `first` on, up to the first one that is not stored yet."""
    expected = range(first, first + len(results))
    same = results.tasks.task_id == list(expected)
    return results.rows(slice(0, len(results) if same.all() else int(same.argmin())))
