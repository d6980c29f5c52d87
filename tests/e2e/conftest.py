from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.arena import ArenaProcess


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArenaProcess]:
    """One arena for a module's tests; each of them starts runs of its own."""
    started = ArenaProcess(tmp_path_factory.mktemp("arena") / "data", "--idle")
    yield started
    assert started.stop() == 0
