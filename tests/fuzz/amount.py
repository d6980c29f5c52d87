"""How much is fuzzed, and with which seed: `make fuzz` says so in the environment."""

from __future__ import annotations

import os
import random

# Messages on each subject of the bus; a call of the HTTP interface is tried far less often.
MESSAGES = int(os.environ.get("FUZZ_MESSAGES", "200"))
CALLS = max(MESSAGES // 200, 1)
LARGE = MESSAGES >= 1000
SEED = int(os.environ.get("FUZZ_SEED") or random.SystemRandom().randrange(2**32))


def announce() -> None:
    """pytest shows it when a test fails, and always with -s."""
    print(f"\nFUZZ_SEED={SEED} FUZZ_MESSAGES={MESSAGES}")
