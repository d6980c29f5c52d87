"""The run book: every run's record, in the KV bucket `runs`.

To pause or stop a run, write its new state here; the generator reads it. A record changes only by
compare-and-set, so two clients cannot both win.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

from nats.js import JetStreamContext
from nats.js.errors import (
    InvalidKeyError,
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NotFoundError,
)
from nats.js.kv import KV_OP, KeyValue

from shared.domain.schedulers import LEARNERS
from shared.domain.spec import RunSpec
from shared.domain.spec_parts.learning_spec import Objective
from shared.errors import NotAllowed, NotFound, Unreadable
from shared.messages import subjects
from shared.messages.formats import FORMATS, UNFORKED
from shared.messages.runs import (
    ALLOWED_FROM,
    Fork,
    RunRecord,
    RunState,
    new_run_id,
    read_run_record,
)
from shared.runtime.logs import logger

Change = dict[str, Any]  # of fields of a record

log = logger()


class RunBook:
    """Reads and writes run records, and keeps a copy of all of them that `refresh` updates."""

    def __init__(self, jetstream: JetStreamContext) -> None:
        self._jetstream = jetstream
        self._bucket: KeyValue | None = None
        self._last_sequence = 0
        self._records: dict[str, RunRecord] = {}
        self.unreadable: set[str] = set()  # runs whose record is broken, or of a newer version
        self._refreshing = asyncio.Lock()

    async def _kv(self) -> KeyValue:
        if self._bucket is None:
            self._bucket = await self._jetstream.key_value(subjects.RUNS_BUCKET)
        return self._bucket

    async def open(self) -> None:
        await self._kv()

    async def create(
        self, spec: RunSpec, learners: Iterable[str] = LEARNERS, fork: Fork | None = None
    ) -> RunRecord:
        kv = await self._kv()
        while True:
            now = time.time()
            record = RunRecord(
                run=new_run_id(),
                spec=spec,
                state=RunState.RUNNING,
                created_at=now,
                updated_at=now,
                learners=tuple(learners),
                message_format=FORMATS["run"] if fork else UNFORKED,
                fork=fork,
            )
            try:
                await kv.create(record.run, record.model_dump_json().encode())
            except KeyWrongLastSequenceError:
                continue  # two runs of the same second may get the same short id
            self._records[record.run] = record
            return record

    async def get(self, run: str) -> RunRecord:
        """The current record."""
        if not subjects.RUN_ID.fullmatch(run):
            raise NotFound(f"no run {run!r}")
        record, _ = await self._read(run)
        return record

    async def _read(self, run: str) -> tuple[RunRecord, int]:
        try:
            entry = await (await self._kv()).get(run)
        except KeyNotFoundError:
            raise NotFound(f"no run {run!r}") from None
        try:
            return read_run_record(entry.value or b"", run), entry.revision or 0
        except Unreadable as error:
            raise NotFound(f"the record of run {run!r} cannot be read: {error}") from None

    async def exists(self, run: str) -> bool:
        """Whether it has a record, readable or not."""
        try:
            await (await self._kv()).get(run)
        except (KeyNotFoundError, InvalidKeyError):
            return False
        return True

    async def local(self, run: str) -> RunRecord:
        """The local copy, which may lag behind: call `refresh` first where its state matters."""
        if run not in self._records:
            self._records[run] = await self.get(run)
        return self._records[run]

    async def spec(self, run: str) -> RunSpec:
        """May be stale; only the objective can change, and only the trainer uses it."""
        return (await self.local(run)).spec

    async def change_state(self, run: str, state: RunState) -> RunRecord:
        """Change the state of a run; a no-op if it has that state already."""

        def with_state(record: RunRecord) -> Change:
            if record.state == state:
                return {}
            if record.state not in ALLOWED_FROM[state]:
                raise NotAllowed(f"run {run} is {record.state}: it cannot become {state}")
            return {"state": state}

        return await self.change(run, with_state)

    async def set_objective(self, run: str, objective: Objective) -> RunRecord:
        """Give the learners of an active run another objective: the one part of a spec that may
        change, and only where results depend on timing anyway."""

        def with_objective(record: RunRecord) -> Change:
            if not record.active:
                raise NotAllowed(f"run {run} is {record.state}: its learners learn no more")
            if record.spec.lockstep:
                raise NotAllowed(
                    f"run {run} learns in lockstep: its results follow from its spec, which does "
                    "not change; start a run with this objective"
                )
            return {"spec": record.spec.model_copy(update={"objective": objective})}

        return await self.change(run, with_objective)

    async def set_notes(self, run: str, tags: tuple[str, ...], notes: str) -> RunRecord:
        """Set what people write about a run. `updated_at` stays: it says when the run ended."""
        return await self.change(
            run, lambda record: {"tags": tags, "notes": notes, "updated_at": record.updated_at}
        )

    async def change(self, run: str, fields: Callable[[RunRecord], Change]) -> RunRecord:
        """Change the fields that `fields` returns of the current record; none: nothing changes."""
        if not subjects.RUN_ID.fullmatch(run):
            raise NotFound(f"no run {run!r}")
        while True:
            record, revision = await self._read(run)
            if not (new := fields(record)):
                return record
            after = record.model_copy(update={"updated_at": time.time(), **new})
            try:
                kv = await self._kv()
                await kv.update(run, after.model_dump_json().encode(), last=revision)
            except KeyWrongLastSequenceError:
                continue
            self._records[run] = after
            return after

    async def delete(self, run: str) -> None:
        await (await self._kv()).purge(run)
        self._records.pop(run, None)

    async def refresh(self) -> list[RunRecord]:
        """All runs, oldest first. Costs one small request when nothing has changed."""
        async with self._refreshing:
            await self._read_new_records()
        return sorted(self._records.values(), key=lambda record: (record.created_at, record.run))

    async def _read_new_records(self) -> None:
        await self._kv()
        info = await self._jetstream.stream_info(subjects.RUNS_STREAM)
        if info.state.last_seq < self._last_sequence:  # the NATS server was wiped
            self._last_sequence, self._records = 0, {}
            self.unreadable.clear()
        while self._last_sequence < info.state.last_seq:
            try:
                message = await self._jetstream.get_msg(
                    subjects.RUNS_STREAM,
                    seq=self._last_sequence + 1,
                    subject=subjects.RUNS_SUBJECTS,
                    next=True,
                )
            except NotFoundError:
                self._last_sequence = info.state.last_seq
                break
            self._last_sequence = message.seq or info.state.last_seq
            run = (message.subject or "").rsplit(".", 1)[-1]
            self.unreadable.discard(run)
            if KV_OP in (message.headers or {}):
                self._records.pop(run, None)
            else:
                try:
                    self._records[run] = read_run_record(message.data or b"", run)
                except Unreadable as error:
                    self.unreadable.add(run)
                    log.warning("unreadable run record", run=run, reason=str(error))
