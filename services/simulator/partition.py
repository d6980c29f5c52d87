"""One scheduler's decisions: consumed in any order, simulated in batch order.

Replicas of a worker publish out of order, messages are redelivered, and another simulator may be
ahead. A partition applies batch k of a run only after batch k - 1, publishes the results with the
state of the cluster as one compare-and-set message, and only then acknowledges the decisions.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram

from services.simulator.simulation import Simulation
from shared.bus.client import Bus
from shared.bus.run_book import RunBook
from shared.domain.spec import RunSpec
from shared.errors import Conflict, NotFound, Unreadable
from shared.messages import subjects
from shared.messages.batches import Batch
from shared.messages.runs import RunState
from shared.runtime.metrics import LATENCY_BUCKETS

# Early batches buffered per run, unacknowledged; more are nacked. The batch of a worker that died
# is redelivered after `ack_wait` seconds, and the other workers continue in the meantime.
EARLY_BATCHES = 128
# While only early batches arrive, another simulator may have published the next one: the state is
# reloaded from the bus, at most this often.
RELOAD_SECONDS = 0.5
# Runs whose cluster is cached; that of others is reloaded from the bus.
CACHED_RUNS = 64


class Delivery(Protocol):
    """A delivered message."""

    async def ack(self) -> None: ...
    async def nack(self, delay: float | None = None) -> None: ...


@dataclass(slots=True)
class Progress:
    """How far a run has been simulated."""

    simulation: Simulation
    last_sequence: int  # in RESULTS, of the message that holds this simulation
    early: dict[int, tuple[Batch, Delivery]] = field(default_factory=dict)
    advanced_at: float = field(default_factory=time.monotonic)

    def advance(self, simulation: Simulation, last_sequence: int) -> None:
        self.simulation, self.last_sequence = simulation, last_sequence
        self.advanced_at = time.monotonic()

    def is_stalled(self) -> bool:
        return time.monotonic() - self.advanced_at > RELOAD_SECONDS

    async def nack_early(self) -> None:
        for _, delivery in self.early.values():
            await delivery.nack()
        self.early.clear()


@dataclass(frozen=True, slots=True)
class Metrics:
    results: Counter
    seconds: Counter
    latency: Histogram

    @classmethod
    def register(cls, registry: CollectorRegistry) -> Metrics:
        return cls(
            Counter("hybrid_results_total", "Results published", ["scheduler"], registry=registry),
            Counter("hybrid_simulate_seconds_total", "Time in simulation", registry=registry),
            Histogram(
                "hybrid_result_latency_seconds",
                "From a batch of tasks on the bus to its results there",
                ["scheduler"],
                buckets=LATENCY_BUCKETS,
                registry=registry,
            ),
        )


class Partition:
    def __init__(self, scheduler: str, bus: Bus, runs: RunBook, metrics: Metrics) -> None:
        self.scheduler = scheduler
        self._bus = bus
        self._runs = runs
        self._metrics = metrics
        self._progress: OrderedDict[str, Progress] = OrderedDict()
        self._lock = asyncio.Lock()

    async def process(self, batch: Batch, delivery: Delivery) -> None:
        """Simulate or buffer a batch. Raises Unreadable if it can never be simulated."""
        run = batch.envelope.run
        async with self._lock:
            progress = await self._load(run)
            if progress is None:
                await delivery.ack()
                return
            number = batch.envelope.batch
            if number > progress.simulation.next_batch and progress.is_stalled():
                await self._reload(progress, run)
            if number > progress.simulation.next_batch:
                await self._buffer(progress, batch, delivery)
            else:
                await self._apply(progress, batch, delivery)
            await self._apply_early(progress)

    async def _apply_early(self, progress: Progress) -> None:
        """Apply the buffered batches that are next, or that another simulator has applied."""
        while due := [n for n in progress.early if n <= progress.simulation.next_batch]:
            batch, delivery = progress.early.pop(min(due))
            try:
                await self._apply(progress, batch, delivery)
            except Unreadable:  # redelivered as the next batch, and rejected then
                await delivery.nack()
                break

    async def _load(self, run: str) -> Progress | None:
        """None for a completed run whose state is trimmed: all its decisions were simulated, and
        this one is a duplicate, from a worker that hung until its batch was redelivered.

        While there is a state, the last tasks may have arrived just as the run was completed.
        """
        if run in self._progress:
            self._progress.move_to_end(run)
            return self._progress[run]
        try:
            record = await self._runs.get(run)
        except NotFound as error:
            raise Unreadable(str(error)) from None
        spec = record.spec
        if self.scheduler not in spec.schedulers:
            raise Unreadable(f"{self.scheduler} does not take part in run {run}")
        simulation, sequence = await self._stored_state(run, spec)
        if record.state == RunState.COMPLETED and sequence == 0:
            return None
        progress = self._progress[run] = Progress(simulation, sequence)
        if len(self._progress) > CACHED_RUNS:
            _, evicted = self._progress.popitem(last=False)
            await evicted.nack_early()
        return progress

    async def _buffer(self, progress: Progress, batch: Batch, delivery: Delivery) -> None:
        number = batch.envelope.batch
        if number in progress.early or len(progress.early) < EARLY_BATCHES:
            # A redelivery replaces the delivery that timed out.
            progress.early[number] = (batch, delivery)
        else:
            await delivery.nack(delay=self._bus.settings.ack_wait.total_seconds() / 2)

    async def _apply(self, progress: Progress, batch: Batch, delivery: Delivery) -> None:
        """Simulate the batch if it is the next one, and acknowledge it."""
        while batch.envelope.batch == progress.simulation.next_batch:
            started = time.perf_counter()
            rows, after = progress.simulation.advance(batch.rows)
            envelope = replace(batch.envelope, kind="results", state=after.state())
            self._metrics.seconds.inc(time.perf_counter() - started)
            try:
                sequence = await self._bus.publish_batch(
                    Batch(envelope, rows), after=progress.last_sequence
                )
            except Conflict:
                await self._reload(progress, batch.envelope.run)
                continue
            progress.advance(after, sequence)
            self._metrics.results.labels(self.scheduler).inc(rows.num_rows)
            age = time.time() - batch.envelope.published_at
            self._metrics.latency.labels(self.scheduler).observe(max(age, 0.0))
        if batch.envelope.batch > progress.simulation.next_batch:  # after a reload
            await self._buffer(progress, batch, delivery)
        else:
            await delivery.ack()

    async def _reload(self, progress: Progress, run: str) -> None:
        """Another simulator is ahead, or the last message was garbage: load the stored state."""
        progress.advance(*await self._stored_state(run, progress.simulation.spec))

    async def _stored_state(self, run: str, spec: RunSpec) -> tuple[Simulation, int]:
        """The simulation after the last results on the bus, and their sequence number."""
        after = partial(Simulation.after, spec)
        subject = subjects.results(run, self.scheduler)
        last = await self._bus.last_message(subject, subjects.RESULTS, after)
        return (Simulation.new(spec), 0) if last is None else (after(last.envelope), last.sequence)

    async def close(self) -> None:
        """Nack all buffered batches, so that they are redelivered to the next owner at once."""
        for progress in self._progress.values():
            await progress.nack_early()
        self._progress.clear()
