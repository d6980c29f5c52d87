"""`hybrid tail`: watch the bus."""

from __future__ import annotations

import asyncio
import json as jsons
from typing import Annotated, Any

import nats
import nats.errors
import typer
from nats.aio.msg import Msg
from rich.table import Table

from services.cli.client import settings
from services.cli.options import DataDir, Json
from services.cli.output import err, explained, fail, out, print_json
from shared import batches
from shared.batches import Batch
from shared.connection import tls_context
from shared.errors import Unreadable
from shared.settings import Settings
from shared.subjects import inbox

# What fits on a line of a terminal; --json has every column.
SHOWN = (
    "task_id",
    "size",
    "compute_intensity",
    "memory_required",
    "arrival_time",
    "gpu_fraction",
    "gpu",
    "time",
    "wait",
    "energy",
    "cost",
    "status",
)


def tail(
    subject: Annotated[str, typer.Argument(help="A subject; * and > stand for any.")] = ">",
    rows: Annotated[int, typer.Option(min=0, help="Rows to show of each batch.")] = 3,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after so many messages.")] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Print messages as they pass on the bus, until Ctrl-C.

    Examples: `hybrid tail 'events.>'`, `hybrid tail 'results.*.greedy' --rows 1`,
    `hybrid tail 'rejected.>' --json`
    """
    with explained():
        where = settings(data_dir)
    asyncio.run(_follow(where, subject, rows, count, json))


async def _follow(where: Settings, subject: str, rows: int, count: int | None, json: bool) -> None:
    try:
        client = await nats.connect(
            where.nats_servers,
            inbox_prefix=inbox(where.nats_user),
            user=where.nats_user or None,
            password=where.nats_password.get_secret_value() or None,
            connect_timeout=10,
            tls=tls_context(where),
            tls_handshake_first=where.nats_tls_ca is not None,
            allow_reconnect=False,
            # These are of the first connection too: without them it is tried for two minutes.
            max_reconnect_attempts=1,
            reconnect_time_wait=0.2,
            error_cb=_ignore,
        )
    except (nats.errors.Error, OSError) as error:
        fail(f"NATS does not answer at {where.nats_url}: {error!r}")
    subscription = await client.subscribe(subject)
    err.print(f"listening on {subject}; Ctrl-C ends", style="dim")
    seen = 0
    async for message in subscription.messages:
        # Replies, JetStream's own traffic, and its deliveries of messages that were seen already.
        if message.subject.startswith(("_INBOX.", "$JS.", "arena.")) or "$JS.ACK" in message.reply:
            continue
        described = describe(message, rows)
        print_json(described) if json else _show(described)
        seen += 1
        if seen == count:
            break
    await client.close()


async def _ignore(error: Exception) -> None:
    """The one that ends the attempt is told; NATS's own log of the others is a stack trace."""


def describe(message: Msg, rows: int) -> dict[str, Any]:
    """A message as plain data, whatever it holds."""
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
    return {
        "run": envelope.run,
        "batch": envelope.batch,
        "scheduler": envelope.scheduler,
        "published_at": envelope.published_at,
        "state": envelope.state,
        "count": batch.rows.num_rows,
        "rows": batch.rows.slice(0, rows).to_pylist(),
    }


def _show(described: dict[str, Any]) -> None:
    title = f"[bold cyan]{described['subject']}[/]"
    if "batch" not in described:
        body = described.get("json", described.get("raw"))
        out.print(title, jsons.dumps(body) if not isinstance(body, str) else body, markup=True)
        return
    out.print(f"{title} batch {described['batch']}: {described['count']} rows")
    if described["rows"]:
        shown = [key for key in SHOWN if key in described["rows"][0]]
        table = Table(*shown, box=None, header_style="dim")
        for row in described["rows"]:
            table.add_row(
                *(f"{row[k]:.5g}" if isinstance(row[k], float) else str(row[k]) for k in shown)
            )
        out.print(table)
