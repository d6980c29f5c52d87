"""One scheduler's decisions, put in order and simulated, batch after batch.

Replicas of a worker deliver out of order, redeliveries come twice, another simulator may have
gone ahead. A lane sorts that out: it applies batch k of a run only after batch k - 1, publishes
rows and cluster in one compare-and-set message, and only then acknowledges the decision.
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
from shared import subjects
from shared.batches import Batch
from shared.bus import Bus
from shared.errors import Conflict, NotFound, Unreadable
from shared.metrics import LATENCY_BUCKETS
from shared.runs import RunBook, RunState
from shared.spec import RunSpec

# Batches that came too early are kept, unacknowledged, up to this many per run; the ones beyond
# are given back to the bus. A worker that died holds up its batch for `ack_wait` seconds, and the
# other workers go on meanwhile.
EARLY_BATCHES = 128
# When early batches come but the one that is due does not, another simulator may have had it: the
# bus is asked, at most this often.
REST_SECONDS = 0.5
# Runs whose cluster is kept in memory; the others are read back from the bus when needed.
KEPT_RUNS = 64


class Delivery(Protocol):
    """A delivered message, as far as a lane cares."""

    async def ack(self) -> None: ...
    async def nack(self, delay: float | None = None) -> None: ...


@dataclass(slots=True)
class Progress:
    """How far a run has come in this lane."""

    simulation: Simulation
    last_sequence: int  # in RESULTS, of the message that holds this simulation
    early: dict[int, tuple[Batch, Delivery]] = field(default_factory=dict)
    moved_at: float = field(default_factory=time.monotonic)

    def move(self, simulation: Simulation, last_sequence: int) -> None:
        self.simulation, self.last_sequence = simulation, last_sequence
        self.moved_at = time.monotonic()

    def rests(self) -> bool:
        return time.monotonic() - self.moved_at > REST_SECONDS


@dataclass(frozen=True, slots=True)
class Metrics:
    results: Counter
    seconds: Counter
    latency: Histogram

    @classmethod
    def register(cls, registry: CollectorRegistry) -> Metrics:
        return cls(
            Counter("hybrid_results_total", "Results made", ["scheduler"], registry=registry),
            Counter("hybrid_simulate_seconds_total", "Time in simulation", registry=registry),
            Histogram(
                "hybrid_result_latency_seconds",
                "From a batch of tasks on the bus to its results there",
                ["scheduler"],
                buckets=LATENCY_BUCKETS,
                registry=registry,
            ),
        )


class Lane:
    def __init__(self, scheduler: str, bus: Bus, runs: RunBook, metrics: Metrics) -> None:
        self.scheduler = scheduler
        self._bus = bus
        self._runs = runs
        self._metrics = metrics
        self._progress: OrderedDict[str, Progress] = OrderedDict()
        self._lock = asyncio.Lock()

    async def offer(self, batch: Batch, delivery: Delivery) -> None:
        """Take a decision in. Raises Unreadable for one that can never be simulated."""
        run = batch.envelope.run
        async with self._lock:
            progress = await self._load(run)
            if progress is None:
                await delivery.ack()
                return
            number = batch.envelope.batch
            if number > progress.simulation.next_batch and progress.rests():
                await self._reload(progress, run)
            if number > progress.simulation.next_batch:
                await self._keep(progress, number, batch, delivery)
            else:
                await self._apply(progress, batch, delivery)
            await self._catch_up(progress)

    async def _catch_up(self, progress: Progress) -> None:
        """Apply the early batches that are due by now; another simulator may have done some."""
        while due := [n for n in progress.early if n <= progress.simulation.next_batch]:
            batch, delivery = progress.early.pop(min(due))
            try:
                await self._apply(progress, batch, delivery)
            except Unreadable:  # comes back as the batch that is due, and is rejected then
                await delivery.nack()
                break

    async def _load(self, run: str) -> Progress | None:
        """None for a completed run whose state is gone: all its decisions were simulated. What
        still comes was sent twice, by a worker that hung until its batch was another one's.

        While it has a state, the last tasks may have come in just as the run was completed.
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
        simulation, sequence = await self._newest(run, spec)
        if record.state == RunState.COMPLETED and sequence == 0:
            return None
        progress = self._progress[run] = Progress(simulation, sequence)
        if len(self._progress) > KEPT_RUNS:
            _, old = self._progress.popitem(last=False)
            await self._give_back(old)
        return progress

    async def _keep(self, progress: Progress, number: int, batch: Batch, new: Delivery) -> None:
        if number in progress.early or len(progress.early) < EARLY_BATCHES:
            # A redelivery takes the place of the delivery whose time ran out.
            progress.early[number] = (batch, new)
        else:
            await new.nack(delay=self._bus.settings.ack_wait.total_seconds() / 2)

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
            progress.move(after, sequence)
            self._metrics.results.labels(self.scheduler).inc(rows.num_rows)
            age = time.time() - batch.envelope.published_at
            self._metrics.latency.labels(self.scheduler).observe(max(age, 0.0))
        if batch.envelope.batch > progress.simulation.next_batch:  # after a reload
            await self._keep(progress, batch.envelope.batch, batch, delivery)
        else:
            await delivery.ack()

    async def _reload(self, progress: Progress, run: str) -> None:
        """Another simulator went ahead (or garbage was in the way): go on from what the bus has."""
        progress.move(*await self._newest(run, progress.simulation.spec))

    async def _newest(self, run: str, spec: RunSpec) -> tuple[Simulation, int]:
        """The simulation after the last results on the bus, and their sequence number."""
        after = partial(Simulation.after, spec)
        subject = subjects.results(run, self.scheduler)
        last = await self._bus.last(subject, subjects.RESULTS, after)
        return (Simulation.new(spec), 0) if last is None else (after(last.envelope), last.sequence)

    async def close(self) -> None:
        """Give everything back that waits, so that the next owner gets it at once."""
        for progress in self._progress.values():
            await self._give_back(progress)
        self._progress.clear()

    async def _give_back(self, progress: Progress) -> None:
        for _, delivery in progress.early.values():
            await delivery.nack()
        progress.early.clear()
