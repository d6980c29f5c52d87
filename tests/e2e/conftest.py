from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.arena import ArenaProcess
from tests.leaks import files_with_secrets


@pytest.fixture(scope="package")
def shared_arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArenaProcess]:
    """One arena for all who do not mind the runs of others; the learners have two workers each."""
    scale = ("--scale", "hybrid_ml=2", "--scale", "rl_agent=2")
    started = ArenaProcess(tmp_path_factory.mktemp("shared") / "data", "--idle", *scale)
    yield started
    assert started.stop() == 0
    assert started.logged("permissions violation") == []
    assert files_with_secrets(started.folder) == []


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArenaProcess]:
    """One arena for a module's tests alone; each of them starts runs of its own."""
    started = ArenaProcess(tmp_path_factory.mktemp("arena") / "data", "--idle")
    yield started
    assert started.stop() == 0
    assert started.logged("permissions violation") == []
    assert files_with_secrets(started.folder) == []
