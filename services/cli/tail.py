"""`hybrid tail`: watch the bus."""

from __future__ import annotations

import asyncio
import json as jsons
from typing import Annotated, Any

import nats
import nats.errors
from nats.aio.msg import Msg
from typer import Argument, Option

from services.cli.options import DataDir, Json
from services.cli.output import batch_table, err, fail, out, print_json
from services.cli.settings import settings
from shared.bus.security import tls_context
from shared.errors import Unreadable
from shared.messages import batches
from shared.messages.batches import Batch
from shared.messages.subjects import inbox
from shared.runtime.settings import Settings

# The columns that fit on a line of a terminal; --json has every column.
SHOWN_COLUMNS = (
    "task_id", "size", "compute_intensity", "memory_required", "arrival_time", "gpu_fraction",
    "device", "cpu", "time", "turnaround", "energy", "cost", "status",
)  # fmt: skip


def tail(
    subject: Annotated[str, Argument(help="A subject; * and > are wildcards.")] = ">",
    rows: Annotated[int, Option(min=0, help="Rows to show of each batch.")] = 3,
    count: Annotated[int | None, Option(min=1, help="Stop after this many messages.")] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Print messages as they pass on the bus, until Ctrl-C.

    Examples: `hybrid tail 'events.>'`, `hybrid tail 'results.*.greedy' --rows 1`,
    `hybrid tail 'rejected.>' --json`
    """
    target = settings(data_dir)
    asyncio.run(_follow(target, subject, rows, count, json))


async def _follow(target: Settings, subject: str, rows: int, count: int | None, json: bool) -> None:
    try:
        client = await nats.connect(
            target.nats_servers,
            inbox_prefix=inbox(target.nats_user),
            user=target.nats_user or None,
            password=target.nats_password.get_secret_value() or None,
            connect_timeout=10,
            tls=tls_context(target),
            tls_handshake_first=target.nats_tls_ca is not None,
            allow_reconnect=False,
            # Also for the first connection, which would otherwise be tried for two minutes.
            max_reconnect_attempts=1,
            reconnect_time_wait=0.2,
            error_cb=_ignore,
        )
    except (nats.errors.Error, OSError) as error:
        fail(f"NATS does not answer at {target.nats_url}: {error!r}")
    subscription = await client.subscribe(subject)
    err.print(f"listening on {subject}; Ctrl-C to stop", style="dim")
    shown = 0
    async for message in subscription.messages:
        # Replies, JetStream's own traffic, and its deliveries of messages that were shown already.
        if message.subject.startswith(("_INBOX.", "$JS.", "arena.")) or "$JS.ACK" in message.reply:
            continue
        described = describe(message, rows)
        print_json(described) if json else _show(described)
        shown += 1
        if shown == count:
            break
    await client.close()


async def _ignore(error: Exception) -> None:
    """The last error is reported below; nats-py would log each one with a traceback."""


def describe(message: Msg, rows: int) -> dict[str, Any]:
    """A message as plain data: a batch, JSON, or the raw bytes."""
    described: dict[str, Any] = {"subject": message.subject, "bytes": len(message.data)}
    if message.headers:
        described["headers"] = dict(message.headers)
    try:
        described |= _batch(batches.decode(message.data, message.subject), rows)
    except (Unreadable, KeyError) as reason:
        try:
            described["json"] = jsons.loads(message.data)
        except ValueError:
            described["raw"] = repr(message.data[:200])
            if message.subject.partition(".")[0] in batches.SCHEMAS:
                described["unreadable"] = str(reason)
    return described


def _batch(batch: Batch, rows: int) -> dict[str, Any]:
    envelope = batch.envelope
    complete = batches.complete(batch.rows, envelope.kind)
    return {
        "run": envelope.run,
        "batch": envelope.batch,
        "scheduler": envelope.scheduler,
        "published_at": envelope.published_at,
        "state": envelope.state,
        "count": batch.rows.num_rows,
        "rows": complete.slice(0, rows).to_pylist(),
    }


def _show(described: dict[str, Any]) -> None:
    title = f"[bold cyan]{described['subject']}[/]"
    if "batch" not in described:
        body = described.get("json", described.get("raw"))
        out.print(title, jsons.dumps(body) if not isinstance(body, str) else body, markup=True)
        return
    out.print(f"{title} batch {described['batch']}: {described['count']} rows")
    if described["rows"]:
        columns = [key for key in SHOWN_COLUMNS if key in described["rows"][0]]
        out.print(batch_table(described["rows"], columns))
