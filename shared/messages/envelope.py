"""The envelope of a batch: JSON in the metadata of its Arrow schema."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from typing import Any

from shared.errors import TooNew, Unreadable
from shared.messages.formats import FORMATS, too_new

INT64_LIMIT = 2**63  # an int64 column holds numbers below this


@dataclass(frozen=True, slots=True)
class Envelope:
    kind: str  # tasks, decisions or results
    run: str
    batch: int  # sequence number in the run, from 0, without gaps
    published_at: float  # wall clock when the tasks entered the bus
    scheduler: str = ""
    state: dict[str, Any] | None = None  # tasks: the cursor; results: cluster and standing

    @property
    def subject(self) -> str:
        return ".".join(part for part in (self.kind, self.run, self.scheduler) if part)

    @property
    def message_id(self) -> str:
        """The same for every attempt to publish this batch, by any process."""
        return f"{self.subject}.{self.batch}"

    def to_json(self) -> str:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return json.dumps({"format": FORMATS["batch"], **values})


def read_envelope(raw: bytes | str, kind: str) -> Envelope:
    try:
        fields = json.loads(raw)
        if reason := too_new("batch", int(fields["format"])):
            raise TooNew(reason)
        envelope = Envelope(
            kind=str(fields["kind"]),
            run=str(fields["run"]),
            batch=int(fields["batch"]),
            published_at=float(fields["published_at"]),
            scheduler=str(fields.get("scheduler", "")),
            state=fields.get("state"),
        )
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unreadable(f"the envelope is broken: {error!r}") from None
    if envelope.kind != kind:
        raise Unreadable(f"a message of kind {envelope.kind!r} where {kind!r} is expected")
    if not 0 <= envelope.batch < INT64_LIMIT:
        raise Unreadable(f"the batch number is not one of 0..{INT64_LIMIT - 1}")
    if not math.isfinite(envelope.published_at):
        raise Unreadable("published_at is not a time")
    if not isinstance(envelope.state, dict | None):
        raise Unreadable("the state is not a mapping")
    return envelope
