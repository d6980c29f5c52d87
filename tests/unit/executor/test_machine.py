"""How much memory tasks of real runs may take."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from services.executor.machine import machine_memory_mb

MACHINE_MB = psutil.virtual_memory().total / 1e6
LIMIT_OF_NO_LIMIT = str(2**63 - 4096)  # what version 1 of control groups says


def test_a_container_has_no_more_than_its_limit(tmp_path: Path) -> None:
    limit = tmp_path / "limit"
    limit.write_text("64000000\n")
    assert machine_memory_mb([tmp_path / "missing", limit]) == 64


@pytest.mark.parametrize("unlimited", ["max\n", LIMIT_OF_NO_LIMIT])
def test_without_a_limit_it_is_the_machine(tmp_path: Path, unlimited: str) -> None:
    limit = tmp_path / "limit"
    limit.write_text(unlimited)
    assert machine_memory_mb([limit]) == pytest.approx(MACHINE_MB, rel=0.01)
