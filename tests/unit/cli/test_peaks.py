"""How much memory a process had at most."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from services.cli.peaks import peak_mb


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(),
    reason="only Linux notes the most memory that a process had; elsewhere it is looked at often",
)
def test_memory_that_was_given_back_before_anybody_looked_counts() -> None:
    mine = psutil.Process()
    block = b"x" * 200_000_000
    most = mine.memory_info().rss / 1e6
    del block
    assert mine.memory_info().rss / 1e6 < most - 100
    assert peak_mb(mine) >= most - 1
