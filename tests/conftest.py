"""What has to be so before a library is loaded."""

from __future__ import annotations

import os

# Rich takes these for good when it is loaded; a test says itself how wide its terminal is.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)

# One thread a process, as in the arena: the tests themselves run in parallel.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
