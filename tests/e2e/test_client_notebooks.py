"""The notebooks of the clients: every cell runs, and they draw."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.arena import ArenaProcess
from tests.e2e.notebook import CLIENT_NOTEBOOKS, environment, executed
from tests.e2e.test_notebook import errors, pictures, printed

PICTURES = {"gym": 2, "client": 2}
SAID = {"gym": "learned", "client": "500 results"}


@pytest.mark.parametrize("notebook", CLIENT_NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(shared_arena: ArenaProcess, notebook: Path, tmp_path: Path) -> None:
    env = environment(shared_arena) | {"HYBRID_NOTEBOOK_TASKS": "100"}
    done = executed(env, tmp_path, notebook)
    assert errors(done) == []
    assert len(pictures(done)) == PICTURES[notebook.stem]
    assert SAID[notebook.stem] in printed(done)
