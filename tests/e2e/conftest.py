from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.arena import ArenaProcess
from tests.leaks import files_with_secrets


def running(folder: Path, *arguments: str) -> Iterator[ArenaProcess]:
    started = ArenaProcess(folder / "data", "--idle", *arguments)
    yield started
    assert started.stop() == 0
    assert started.logged("permissions violation") == []
    assert files_with_secrets(started.folder) == []


@pytest.fixture(scope="package")
def shared_arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArenaProcess]:
    """One arena for all tests that tolerate the runs of others; two workers of each learner."""
    scale = ("--scale", "hybrid_ml=2", "--scale", "rl_agent=2")
    yield from running(tmp_path_factory.mktemp("shared"), *scale)


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArenaProcess]:
    """One arena for a module's tests alone; each of them starts runs of its own."""
    yield from running(tmp_path_factory.mktemp("arena"))
