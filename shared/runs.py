"""Runs: the record of each, and the book that keeps them.

The book is the KV bucket `runs`. Writing a new state there is all that pausing or stopping means;
the generator reads it. A record changes only by compare-and-set, so two people cannot both win.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from datetime import UTC, datetime
from enum import StrEnum

from nats.js import JetStreamContext
from nats.js.errors import (
    InvalidKeyError,
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NotFoundError,
)
from nats.js.kv import KV_OP, KeyValue
from pydantic import BaseModel, ConfigDict, ValidationError

from shared import subjects
from shared.errors import NotAllowed, NotFound, Unreadable
from shared.formats import FORMATS, RunFormat, problem
from shared.logs import logger
from shared.spec import RunSpec

log = logger()


class RunState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    COMPLETED = "completed"


ACTIVE = {RunState.RUNNING, RunState.PAUSED}

# From which states a run may go to which.
MOVES: dict[RunState, set[RunState]] = {
    RunState.PAUSED: {RunState.RUNNING},
    RunState.RUNNING: {RunState.PAUSED},
    RunState.STOPPED: ACTIVE,
    RunState.COMPLETED: ACTIVE,
}


class RunRecord(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    run: str
    spec: RunSpec
    state: RunState
    created_at: float
    updated_at: float
    message_format: RunFormat = FORMATS["run"]

    @property
    def active(self) -> bool:
        return self.state in ACTIVE


def new_run_id() -> str:
    """Sorts by time; short enough to type."""
    return datetime.now(UTC).strftime("%m%d-%H%M%S-") + secrets.token_hex(2)


class RunBook:
    """Reads and writes run records, and keeps a mirror that `refresh` brings up to date."""

    def __init__(self, stream: JetStreamContext) -> None:
        self._stream = stream
        self._bucket: KeyValue | None = None
        self._seen = 0
        self._mirror: dict[str, RunRecord] = {}
        self.unreadable: set[str] = set()  # runs whose record is ruined, or a newer version's
        self._refreshing = asyncio.Lock()

    async def _kv(self) -> KeyValue:
        if self._bucket is None:
            self._bucket = await self._stream.key_value(subjects.RUNS_BUCKET)
        return self._bucket

    async def open(self) -> None:
        await self._kv()

    async def create(self, spec: RunSpec) -> RunRecord:
        kv = await self._kv()
        while True:
            now = time.time()
            record = RunRecord(
                run=new_run_id(), spec=spec, state=RunState.RUNNING, created_at=now, updated_at=now
            )
            try:
                await kv.create(record.run, record.model_dump_json().encode())
            except KeyWrongLastSequenceError:
                continue  # short ids of the same second may be the same
            self._mirror[record.run] = record
            return record

    async def get(self, run: str) -> RunRecord:
        """The record as it is now."""
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
            return read_record(entry.value or b"", run), entry.revision or 0
        except Unreadable as error:
            raise NotFound(f"the record of run {run!r} cannot be read: {error}") from None

    async def holds(self, run: str) -> bool:
        """Whether there is a record of it, readable or not."""
        try:
            await (await self._kv()).get(run)
        except (KeyNotFoundError, InvalidKeyError):
            return False
        return True

    async def spec(self, run: str) -> RunSpec:
        """A run's spec never changes, so what the mirror has is right."""
        if run not in self._mirror:
            self._mirror[run] = await self.get(run)
        return self._mirror[run].spec

    async def move(self, run: str, state: RunState) -> RunRecord:
        """Take a run to another state; asking for the state it is in changes nothing."""
        while True:
            if not subjects.RUN_ID.fullmatch(run):
                raise NotFound(f"no run {run!r}")
            record, revision = await self._read(run)
            if record.state == state:
                return record
            if record.state not in MOVES[state]:
                raise NotAllowed(f"run {run} is {record.state}: it cannot become {state}")
            moved = record.model_copy(update={"state": state, "updated_at": time.time()})
            try:
                kv = await self._kv()
                await kv.update(run, moved.model_dump_json().encode(), last=revision)
            except KeyWrongLastSequenceError:
                continue
            self._mirror[run] = moved
            return moved

    async def delete(self, run: str) -> None:
        await (await self._kv()).purge(run)
        self._mirror.pop(run, None)

    async def refresh(self) -> list[RunRecord]:
        """All runs, oldest first. Costs one small request when nothing has changed."""
        async with self._refreshing:
            await self._catch_up()
        return sorted(self._mirror.values(), key=lambda record: (record.created_at, record.run))

    async def _catch_up(self) -> None:
        await self._kv()
        info = await self._stream.stream_info(subjects.RUNS_STREAM)
        if info.state.last_seq < self._seen:  # the bus was wiped
            self._seen, self._mirror = 0, {}
            self.unreadable.clear()
        while self._seen < info.state.last_seq:
            try:
                message = await self._stream.get_msg(
                    subjects.RUNS_STREAM,
                    seq=self._seen + 1,
                    subject=subjects.RUNS_SUBJECTS,
                    next=True,
                )
            except NotFoundError:
                self._seen = info.state.last_seq
                break
            self._seen = message.seq or info.state.last_seq
            run = (message.subject or "").rsplit(".", 1)[-1]
            self.unreadable.discard(run)
            if KV_OP in (message.headers or {}):
                self._mirror.pop(run, None)
            else:
                try:
                    self._mirror[run] = read_record(message.data or b"", run)
                except Unreadable as error:
                    self.unreadable.add(run)
                    log.warning("the record of a run is passed over", run=run, reason=str(error))


def read_record(body: bytes, run: str) -> RunRecord:
    """The record under a run's key. What a newer version added, to its spec as well, is ignored,
    unlike in a spec that a person wrote."""
    try:
        record = RunRecord.model_validate_json(body, extra="ignore")
    except ValidationError as error:
        raise Unreadable(f"no readable record of a run: {problem(error)}") from None
    if record.run != run:
        raise Unreadable(f"the record of another run, {record.run}")
    return record
