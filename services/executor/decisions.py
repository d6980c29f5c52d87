"""Requests decisions for tasks that have just arrived from the workers of a scheduler."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import nats.errors
import numpy as np
import pyarrow as pa

from shared.bus.client import FAILED_HEADER, Bus
from shared.bus.publisher import TRANSIENT_ERRORS
from shared.domain.hardware.platform import NOWHERE
from shared.domain.spec import RunSpec
from shared.errors import Unavailable, Unreadable
from shared.messages import batches, subjects
from shared.messages.batches import Batch

# A worker answers within milliseconds; one that has to load a model may take longer.
REQUEST_SECONDS = 5.0


async def request_decisions(
    bus: Bus, scheduler: str, tasks: Batch, state: dict[str, Any], spec: RunSpec
) -> pa.RecordBatch:
    """The rows of these tasks with decisions. Raises Unavailable if no worker answers now."""
    run = tasks.envelope.run
    envelope = replace(tasks.envelope, state=state)
    try:
        reply = await bus.request(
            subjects.decide(run, scheduler), batches.encode(envelope, tasks.rows), REQUEST_SECONDS
        )
    except nats.errors.NoRespondersError:
        raise Unavailable(f"no worker of {scheduler} is deployed") from None
    except TRANSIENT_ERRORS as error:
        raise Unavailable(f"no worker of {scheduler} answers: {error!r}") from None
    if reason := (reply.headers or {}).get(FAILED_HEADER):
        raise Unavailable(f"{scheduler} cannot decide: {reason}")
    try:
        rows = batches.decode(reply.data, subjects.decisions(run, scheduler)).rows
        _check(rows, tasks.rows, spec)
    except Unreadable as error:
        raise Unavailable(f"{scheduler} sent an invalid answer: {error}") from None
    return rows


def _check(decisions: pa.RecordBatch, tasks: pa.RecordBatch, spec: RunSpec) -> None:
    if not batches.complete(decisions, "tasks").equals(batches.complete(tasks, "tasks")):
        raise Unreadable("the decisions are for other tasks than the requested ones")
    batches.order_of(decisions)
    platform = spec.platform
    for name, allowed in (("device", platform.accelerators), ("cpu", platform.cpus)):
        chosen = batches.column(decisions, name)
        if not np.isin(chosen, [NOWHERE, *allowed]).all():
            raise Unreadable(f"column {name} names a device that the cluster does not have")
