"""The environment that libraries read when they are imported."""

from __future__ import annotations

import os

# Rich reads these once; a test sets the width of its terminal itself.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)

# One thread a process, as in the arena: the tests themselves run in parallel.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
