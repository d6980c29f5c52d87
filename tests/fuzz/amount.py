"""How much is fuzzed, and with which seed: `make fuzz` says so in the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

# Messages on each subject of the bus; a call of the HTTP interface is tried far less often.
MESSAGES = int(os.environ.get("FUZZ_MESSAGES", "200"))
LARGE = MESSAGES >= 1000
CALLS = MESSAGES // 80 if LARGE else 1
# The least number of all HTTP calls together.
LEAST_CALLS = MESSAGES if LARGE else 0
# The same in every `make test`, which is no place for surprises; another in every `make fuzz`.
SEED = int(os.environ.get("FUZZ_SEED") or 1)


def announce() -> None:
    """pytest shows it when a test fails, and always with -s."""
    print(f"\nFUZZ_SEED={SEED} FUZZ_MESSAGES={MESSAGES}")


def report(what: str, counts: Mapping[str, int]) -> None:
    """What was sent in the end, as one line of JSON."""
    total = sum(counts.values())
    print(json.dumps({"fuzz": what, "seed": SEED, "total": total, "sent": dict(counts)}))
