"""What an older version wrote, and the same as a newer version would write it."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shared.messages import subjects
from shared.messages.formats import FORMATS, Kind
from shared.messages.models import MANIFEST
from tests.integration.arena import Arena

FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob("*/messages.json"))
DATA_PLANE = (subjects.TASKS, subjects.DECISIONS, subjects.RESULTS)


@dataclass(frozen=True, slots=True)
class Message:
    stream: str
    subject: str
    headers: dict[str, str]
    body: bytes

    @property
    def batch(self) -> int:
        """The batch number of a message of the data plane."""
        return int(self.headers["Nats-Msg-Id"].rpartition(".")[2])


class Recording:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.messages = [
            Message(
                content["stream"],
                content["subject"],
                content["headers"],
                base64.b64decode(content["body"]),
            )
            for content in json.loads((folder / "messages.json").read_text())
        ]
        self.streams: list[dict[str, Any]] = json.loads((folder / "streams.json").read_text())
        self.statements: dict[str, str] = json.loads((folder / "tables.json").read_text())
        self.run = self.of(subjects.RUNS_STREAM)[0].subject.rpartition(".")[2]

    def of(self, stream: str, subject: str = "") -> list[Message]:
        return [
            message
            for message in self.messages
            if message.stream == stream and subject in ("", message.subject)
        ]

    def rows(self, table: str) -> pa.Table:
        return pq.read_table(self._folder / f"{table}.parquet")

    def rows_now(self, table: str) -> list[dict[str, Any]]:
        """As they are after the upgrade, in the columns that the old version had."""
        rows: list[dict[str, Any]] = self.rows(table).to_pylist()
        for row in rows:
            if "gpu" in row:  # GPUs are the first devices
                row["device"] = row.pop("gpu")
            if "gpu_busy" in row:
                row["busy"] = row.pop("gpu_busy") + row.pop("cpu_busy")
        return rows


async def publish(arena: Arena, messages: list[Message]) -> None:
    for message in messages:
        kept = {name: value for name, value in message.headers.items() if name == MANIFEST}
        await arena.jetstream.publish(message.subject, message.body, headers=kept or None)


def extended(message: Message) -> Message:
    """With an unknown field in every place where a newer version might add one."""
    if message.stream in DATA_PLANE:
        return replace(message, body=_rewritten(message.body, {"later": [1]}))
    if message.stream == subjects.MODELS:
        manifest = json.dumps(json.loads(message.headers[MANIFEST]) | {"later": {"a": 1}})
        return replace(message, headers=message.headers | {MANIFEST: manifest})
    content = json.loads(message.body) | {"later": [1]}
    if "spec" in content:
        content["spec"]["later"] = 1
        content["spec"]["physics"]["later"] = True
    return replace(message, body=json.dumps(content).encode())


KIND_OF_STREAM: dict[str, Kind] = {
    **dict.fromkeys(DATA_PLANE, "batch"),
    subjects.RUNS_STREAM: "run",
    subjects.EVENTS: "event",
    subjects.MODELS: "model",
}


def newer(message: Message) -> Message:
    """A message of the format after this version's, without any field that is known."""
    number = FORMATS[KIND_OF_STREAM[message.stream]] + 1
    if message.stream in DATA_PLANE:
        return replace(message, body=_rewritten(message.body, {"format": number}, anew=True))
    content = json.dumps({"message_format": number, "later": 1})
    if message.stream == subjects.MODELS:
        return replace(message, headers=message.headers | {MANIFEST: content})
    return replace(message, body=content.encode())


def _rewritten(body: bytes, more: dict[str, Any], *, anew: bool = False) -> bytes:
    """With more fields in the envelope, its state and the rows; `anew`: with these alone."""
    with pa.ipc.open_stream(body) as reader:
        envelope = {} if anew else json.loads(reader.schema.metadata[b"envelope"])
        rows = reader.read_next_batch()
    rows = rows.append_column("later", pa.array(["x"] * rows.num_rows))
    if state := envelope.get("state"):
        state["later"] = 1
        for part in state.values():
            if isinstance(part, dict):
                part["later"] = 1
    rows = rows.replace_schema_metadata({"envelope": json.dumps(envelope | more)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())
