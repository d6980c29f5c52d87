"""The notebooks of the clients: every cell runs, and they draw."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from tests.e2e.arena import ArenaProcess
from tests.e2e.notebook import CLIENT_NOTEBOOKS, environment, executed
from tests.e2e.test_notebook import errors, pictures, printed

PICTURES = {"gym": 2, "client": 2, "advice": 1, "whatif": 2, "adversary": 1}
# With fewer tasks the advice needs more seeds, which takes longer.
TASKS = {"gym": 100, "client": 100, "advice": 600, "whatif": 200, "adversary": 0}
SAID = {
    "gym": "learned",
    "client": "500 results",
    "advice": "Use eft",
    "whatif": "0 of 300 results are different",
    "adversary": "the same bits: True",
}


@pytest.mark.parametrize("notebook", CLIENT_NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(shared_arena: ArenaProcess, notebook: Path, tmp_path: Path) -> None:
    name = notebook.stem
    small = {"HYBRID_NOTEBOOK_TASKS": str(TASKS[name]), "HYBRID_NOTEBOOK_MINUTES": "0.05"}
    done = executed(environment(shared_arena) | small, tmp_path, notebook)
    assert errors(done) == []
    assert len(pictures(done)) == PICTURES[name]
    assert SAID[name] in printed(done)


@pytest.mark.parametrize("notebook", CLIENT_NOTEBOOKS, ids=lambda path: path.stem)
def test_the_stored_outputs_are_complete_and_say_nothing_of_a_machine(notebook: Path) -> None:
    stored = nbformat.read(notebook, as_version=4)
    nbformat.validate(stored)
    assert errors(stored) == []
    assert len(pictures(stored)) == PICTURES[notebook.stem]
    text = notebook.read_text()
    for picture in pictures(stored):
        text = text.replace(picture.strip(), "")
    assert not re.search(r"/(home|Users|root|tmp|work)/", text)
