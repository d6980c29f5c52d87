"""Workers of cluster policies: a run's batches are placed in order, each on the cluster as the
previous batch left it.

A worker keeps a copy of the cluster, which its own decisions move forward. Replicas take turns: a
worker that waits for its turn says so, and the one that has placed a batch sends its copy to those
that wait. A worker without a copy (after a start, or
when a replica died) uses the checkpoint that the simulator stored with the last results. If no
worker places the next batch, a waiting one reads it from the stream and places it. All replicas
make the same decisions, so it does no harm if two of them place the same batch.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from nats.js.errors import NotFoundError

from services.scheduler.learned_policy import LearnedClusterPolicy
from services.scheduler.loaded_policies import LoadedPolicies
from services.scheduler.model_cache import ModelCache
from services.scheduler.policy import ClusterPolicy, check, check_placed, visible_spec
from services.scheduler.worker import Worker, with_decisions
from shared.bus.consumer_progress import ack_floor, task_durable
from shared.bus.service import Service
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.cluster.observation import Observation
from shared.domain.cluster.virtual_cluster import Cluster
from shared.domain.learning.lockstep import deciding_version
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions
from shared.errors import Conflict, Unavailable, Unreadable
from shared.messages import batches, subjects
from shared.messages.batches import Batch
from shared.messages.envelope import Envelope
from shared.runtime.bounded_dict import BoundedDict
from shared.runtime.logs import logger

# A batch that nobody has placed for this long is taken over; longer if batches take longer.
TAKEOVER_SECONDS = 1.0
TAKEOVER_FACTOR = 3.0
# How often a waiting worker looks at the checkpoint, and says that it waits.
CHECK_SECONDS = 0.25
# For how long after that the other workers send their copies.
LISTENER_SECONDS = 5.0
# Runs whose cluster is kept; that of others is read from the bus.
CACHED_RUNS = 16

log = logger()


@dataclass(slots=True)
class ClusterCopy:
    """The cluster before the batch `next_batch`, and what the scheduler knows of it."""

    next_batch: int
    cluster: Cluster
    observation: Observation

    @classmethod
    def new(cls, spec: RunSpec) -> ClusterCopy:
        cluster = Cluster.idle(len(spec.platform))
        return cls(0, cluster, Observation(cluster.copy()))

    @classmethod
    def from_state(cls, next_batch: int, state: dict[str, Any]) -> ClusterCopy:
        """Read the state that the simulator or another worker sent."""
        try:
            cluster, saved = Cluster.from_json(state["cluster"]), state.get("observation")
            # Missing in results of versions whose workers did not look at the cluster.
            observation = (
                Observation(cluster.copy()) if saved is None else Observation.from_json(saved)
            )
        except (KeyError, TypeError, ValueError) as error:
            raise Unreadable(f"not the state of a cluster: {error!r}") from None
        return cls(next_batch, cluster, observation)

    def state(self) -> dict[str, Any]:
        return {"cluster": self.cluster.to_json(), "observation": self.observation.to_json()}


def place(
    batch: Batch,
    policy: ClusterPolicy,
    copy: ClusterCopy,
    spec: RunSpec,
    prepared: Any,
    model_version: int = 0,
) -> tuple[Batch, ClusterCopy]:
    """Decide a batch. Returns its decisions and the cluster after it; `copy` is not changed."""
    tasks = batches.tasks_of(batch.rows)
    cluster, observation = copy.cluster.copy(), copy.observation.copy()
    view = ClusterView(
        cluster,
        observation,
        tasks,
        spec,
        knows_real_times=policy.knows_real_times,
        prepared=prepared,
    )
    decisions = policy.decide(tasks, view, visible_spec(spec, policy))
    decisions = replace(check_placed(decisions, view, policy.name), model_version=model_version)
    decided = with_decisions(batch, tasks, decisions, policy.name, spec)
    return decided, ClusterCopy(batch.envelope.batch + 1, cluster, observation)


class ClusterWorker(Worker):
    def __init__(
        self, service: Service, policies: LoadedPolicies, models: ModelCache | None = None
    ) -> None:
        super().__init__(service, policies)
        self._models = models
        self._copies: BoundedDict[str, ClusterCopy] = BoundedDict(CACHED_RUNS)
        self._copy_updated = asyncio.Event()
        self._announced_at: BoundedDict[str, float] = BoundedDict(CACHED_RUNS)
        self._listener_until: BoundedDict[str, float] = BoundedDict(CACHED_RUNS)
        self._prepare_seconds = 0.0

    def _policy_of(self, run: str) -> ClusterPolicy:
        policy = self._policies.of(run)
        assert isinstance(policy, ClusterPolicy)
        return policy

    async def decide_batch(self, batch: Batch, spec: RunSpec) -> None:
        prepared, version = await self._prepare(batch, spec)
        if isinstance(prepared, Decisions):
            await self._publish_decisions(batch, spec, replace(prepared, model_version=version))
            return
        copy = await self._await_turn(batch, spec)
        if copy is not None:
            await self._place_and_publish(batch, copy, spec, prepared, version)

    async def answer(self, batch: Batch) -> Batch:
        """Decide tasks of a real run on the cluster that the executor has sent, not on our copy."""
        await self.load_policy(batch)
        spec = await self.spec_of(batch)
        prepared, version = await self._prepare(batch, spec)
        started = time.perf_counter()
        if isinstance(prepared, Decisions):
            prepared = replace(prepared, model_version=version)
            decided = await self._check_or_report(batch, spec, prepared)
        else:
            copy = ClusterCopy.from_state(batch.envelope.batch, batch.envelope.state or {})
            decided, _ = await self._place_or_report(batch, copy, spec, prepared, version)
        self.count(decided, time.perf_counter() - started + self._prepare_seconds)
        return decided

    async def on_placed(self, subject: str, body: bytes) -> None:
        """Another worker has placed a batch: take its copy of the cluster. Or it waits for one:
        send ours, now and after our next batches."""
        run = subjects.run_of(subject)
        known = self._copies.get(run)
        try:
            state = json.loads(body)
            if "waits" in state:
                if state["waits"] != self._service.instance:
                    self._listener_until[run] = time.monotonic() + LISTENER_SECONDS
                    await self._send_copy(run)
                return
            next_batch = int(state["next_batch"])
            if known is None or known.next_batch >= next_batch:
                return  # this run's batches do not come here, or the worker's own message
            self._remember(run, ClusterCopy.from_state(next_batch, state))
        except (Unreadable, ValueError, KeyError, TypeError) as error:
            log.warning("unreadable state of a cluster", run=run, error=repr(error))

    async def _prepare(self, batch: Batch, spec: RunSpec) -> tuple[Any, int]:
        """What the policy prepares; in a thread, so that replicas' messages are still received."""
        policy = self._policy_of(batch.envelope.run)
        visible = visible_spec(spec, policy)
        model, version = await self._model_of(batch, spec)
        started = time.perf_counter()
        tasks = batches.tasks_of(batch.rows)
        try:
            if version and isinstance(policy, LearnedClusterPolicy):
                prepared = await asyncio.to_thread(policy.prepare_with, model, tasks, visible)
            elif type(policy).prepare is not ClusterPolicy.prepare:
                prepared = await asyncio.to_thread(policy.prepare, tasks, visible)
            else:
                prepared = None
        except Exception as error:
            await self.report_failure(batch, error)
            raise
        self._prepare_seconds = time.perf_counter() - started
        return prepared, version

    async def _model_of(self, batch: Batch, spec: RunSpec) -> tuple[Any, int]:
        """The model that decides a batch, and its version; None and 0: there is none."""
        if self._models is None:
            return None, 0
        run = batch.envelope.run
        if not spec.lockstep:
            return await self._models.model(run)
        version = deciding_version(batch.rows.column("task_id")[0].as_py(), spec)
        return await self._models.exact_version(run, version)

    async def _publish_decisions(self, batch: Batch, spec: RunSpec, decisions: Decisions) -> None:
        """For a policy that does not look at the cluster in this run: batches have no order."""
        started = time.perf_counter()
        decided = await self._check_or_report(batch, spec, decisions)
        seconds = time.perf_counter() - started + self._prepare_seconds
        await self._service.bus.publish_batch(decided)
        self.count(decided, seconds)

    async def _check_or_report(self, batch: Batch, spec: RunSpec, decisions: Decisions) -> Batch:
        tasks = batches.tasks_of(batch.rows)
        try:
            checked = check(decisions, tasks, spec, self._name)
        except Exception as error:
            await self.report_failure(batch, error)
            raise
        return with_decisions(batch, tasks, checked, self._name, spec)

    async def _await_turn(self, batch: Batch, spec: RunSpec) -> ClusterCopy | None:
        """The cluster before this batch; None if the batch is decided already."""
        run, number = batch.envelope.run, batch.envelope.batch
        timeout = max(TAKEOVER_SECONDS, TAKEOVER_FACTOR * self._prepare_seconds)
        position, since = -1, time.monotonic()
        while True:
            self._copy_updated.clear()
            copy = self._copies.get(run) or await self._load_checkpoint(run, spec)
            if copy.next_batch >= number:
                return copy if copy.next_batch == number else None
            if copy.next_batch != position:
                position, since = copy.next_batch, time.monotonic()
            elif time.monotonic() - since > timeout:
                await self._take_over(run, copy, spec)
                continue
            await self._announce(run)
            try:
                await asyncio.wait_for(self._copy_updated.wait(), CHECK_SECONDS)
            except TimeoutError:
                await self._load_checkpoint(run, spec)

    async def _announce(self, run: str) -> None:
        """Say that this worker waits for the copy of another one."""
        now = time.monotonic()
        if now - self._announced_at.get(run, 0.0) >= CHECK_SECONDS:
            self._announced_at[run] = now
            await self._broadcast(run, {"waits": self._service.instance})

    async def _send_copy(self, run: str) -> None:
        """Send the cluster to the workers that wait for it, if there are any: for one worker alone
        it would cost as much as small decisions."""
        copy = self._copies.get(run)
        if copy is not None and time.monotonic() < self._listener_until.get(run, 0.0):
            await self._broadcast(run, {"next_batch": copy.next_batch, **copy.state()})

    async def _broadcast(self, run: str, message: dict[str, Any]) -> None:
        subject = subjects.placed(run, self._name)
        await self._service.bus.broadcast(subject, json.dumps(message).encode())

    async def _take_over(self, run: str, copy: ClusterCopy, spec: RunSpec) -> None:
        """Place a batch whose worker has died. If it cannot be read, this worker's own batch is
        redelivered later, so that other runs continue in the meantime."""
        batch = await self._read_batch(run, copy.next_batch)
        if batch is None:
            raise Unavailable(f"batch {copy.next_batch} of run {run} is not placed yet")
        log.info("a batch is taken over", run=run, batch=copy.next_batch)
        prepared, version = await self._prepare(batch, spec)
        await self._place_and_publish(batch, copy, spec, prepared, version)

    async def _place_and_publish(
        self, batch: Batch, copy: ClusterCopy, spec: RunSpec, prepared: Any, version: int
    ) -> None:
        run, started = batch.envelope.run, time.perf_counter()
        decided, after = await self._place_or_report(batch, copy, spec, prepared, version)
        seconds = time.perf_counter() - started + self._prepare_seconds
        try:
            await self._service.bus.publish_batch(decided, once=True)
        except Conflict:
            # Another worker's decisions are stored; with another model they may differ from ours.
            self._copies.pop(run, None)
            return
        self._remember(run, after)
        self.count(decided, seconds)
        await self._send_copy(run)

    async def _place_or_report(
        self, batch: Batch, copy: ClusterCopy, spec: RunSpec, prepared: Any, version: int
    ) -> tuple[Batch, ClusterCopy]:
        try:
            policy = self._policy_of(batch.envelope.run)
            return place(batch, policy, copy, spec, prepared, version)
        except Exception as error:
            await self.report_failure(batch, error)
            raise

    def _remember(self, run: str, copy: ClusterCopy) -> None:
        self._copies[run] = copy
        self._copy_updated.set()

    async def _load_checkpoint(self, run: str, spec: RunSpec) -> ClusterCopy:
        """The newer one of our copy and the checkpoint in the last results."""

        def copy_after(envelope: Envelope) -> ClusterCopy:
            return ClusterCopy.from_state(envelope.batch + 1, envelope.state or {})

        subject = subjects.results(run, self._name)
        last = await self._service.bus.last_message(
            subject, subjects.RESULTS, copy_after, delete_unreadable=False
        )
        stored = ClusterCopy.new(spec) if last is None else copy_after(last.envelope)
        known = self._copies.get(run)
        if known is None or known.next_batch < stored.next_batch:
            self._remember(run, stored)
        return self._copies[run]

    async def _read_batch(self, run: str, number: int) -> Batch | None:
        """A batch that was delivered to a worker and is not acknowledged."""
        jetstream, subject = self._service.bus.jetstream, subjects.tasks(run)
        durable = task_durable(await self._service.runs.local(run), self._name)
        sequence = ack_floor(await jetstream.consumer_info(subjects.TASKS, durable))
        with suppress(NotFoundError, Unreadable):
            while True:
                message = await jetstream.get_msg(
                    subjects.TASKS, seq=sequence + 1, subject=subject, next=True
                )
                batch = batches.decode(message.data or b"", subject)
                if batch.envelope.batch >= number:
                    return batch if batch.envelope.batch == number else None
                sequence = message.seq or sequence + 1
        return None
