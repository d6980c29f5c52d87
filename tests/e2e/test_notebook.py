"""The analysis notebook on a real arena: it runs, it draws, and its figures are ClickHouse's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from services.cli.settings import settings_of
from shared.store.client import Store
from tests.e2e.arena import RULES, ArenaProcess
from tests.e2e.notebook import NOTEBOOK, environment, executed, running

PICTURES = 7
TASKS = 2000


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(notebook: Any) -> str:
    outputs = [output for cell in code(notebook) for output in cell.outputs]
    return "".join(output.text for output in outputs if output.output_type == "stream")


def pictures(notebook: Any) -> list[str]:
    outputs = [output for cell in code(notebook) for output in cell.outputs]
    return [o.data["image/png"] for o in outputs if "image/png" in o.get("data", {})]


def errors(notebook: Any) -> list[Any]:
    return [o for cell in code(notebook) for o in cell.outputs if o.output_type == "error"]


def first_figure(text: str, line: str) -> float:
    """The first number of the line that begins so."""
    found = re.search(rf"^{line}\s+(\d[\d.]*)", text, re.MULTILINE)
    assert found is not None, text
    return float(found[1])


def stopped_by(env: dict[str, str], folder: Path) -> str:
    """The sentence that ended the notebook, as its reader sees it."""
    with pytest.raises(CellExecutionError) as caught:
        executed(env, folder)
    assert caught.value.ename == "Stop"
    # What nbclient quotes of the cell ends with this line; the output follows.
    return caught.value.traceback.rpartition("------------------\n")[2].strip()


def test_an_arena_without_a_run_gives_a_sentence_and_no_stack_trace(
    shared_arena: ArenaProcess, tmp_path: Path
) -> None:
    writer = settings_of(running(shared_arena))
    store = Store(writer.model_copy(update={"clickhouse_database": "without_runs"}))
    store.migrate()
    store.close()
    env = environment(shared_arena) | {"HYBRID_CLICKHOUSE_DATABASE": "without_runs"}
    sentence = stopped_by(env, tmp_path)
    assert sentence.startswith("There is no completed run yet. Make one with `hybrid run start")
    assert "\n" not in sentence


def test_every_cell_runs_and_the_figures_are_those_of_clickhouse(
    shared_arena: ArenaProcess, tmp_path: Path
) -> None:
    run = shared_arena.start_run(tasks=TASKS, pace="max", schedulers=())
    shared_arena.complete(run)
    # Others may have runs there that end later, so this one is named.
    notebook = executed(environment(shared_arena, run), tmp_path)
    assert [cell.execution_count for cell in code(notebook)] == [*range(1, len(code(notebook)) + 1)]
    assert errors(notebook) == []
    assert len(pictures(notebook)) == PICTURES
    text = printed(notebook)
    assert f"run {run}: completed, {TASKS:,} tasks, seed 42, preset hpc" in text

    times = {
        row["scheduler"]: row["seconds"]
        for row in shared_arena.sql(
            "SELECT scheduler, sum(time) AS seconds FROM scheduler_results FINAL "
            f"WHERE run = '{run}' GROUP BY scheduler"
        )
    }
    assert {*RULES, "hybrid_ml", "rl_agent"} <= set(times)
    for name, seconds in times.items():
        shown = first_figure(text, name)
        assert shown == pytest.approx(seconds / TASKS * 1e3, abs=0.0051), name
    lost = first_figure(text, "greedy +lost")
    assert lost == pytest.approx(times["greedy"] - times["oracle"], abs=0.0051)
    [made] = shared_arena.sql(
        "SELECT countIf(shipped) AS shipped FROM models FINAL "
        f"WHERE run = '{run}' AND name = 'rl_agent'"
    )
    shipped = re.search(r"^rl_agent +(\d+) shipped", text, re.MULTILINE)
    assert int(shipped[1]) == made["shipped"]


def test_it_finds_the_arena_of_a_folder_above_and_a_run_without_oracle_or_learner(
    shared_arena: ArenaProcess, tmp_path: Path
) -> None:
    run = shared_arena.start_run(tasks=7, pace="max", schedulers=("greedy",))
    shared_arena.complete(run)
    (tmp_path / ".hybrid").symlink_to(shared_arena.folder)
    below = tmp_path / "notebooks"
    below.mkdir()
    complete = environment(shared_arena, run)
    env = {key: complete[key] for key in complete if not key.startswith("HYBRID_CLICKHOUSE")}
    text = printed(executed(env, below))
    assert f"run {run}: completed, 7 tasks" in text
    assert "The Oracle did not compete in this run" in text
    assert "No scheduler of this run learns." in text


def test_the_stored_notebook_has_its_pictures_and_nothing_of_a_machine() -> None:
    stored = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(stored)
    assert len(pictures(stored)) == PICTURES
    assert errors(stored) == []
    assert "10,000 tasks, seed 42, preset hpc" in printed(stored)
    assert NOTEBOOK.stat().st_size < 1_500_000
    without_pictures = NOTEBOOK.read_text()
    for picture in pictures(stored):
        without_pictures = without_pictures.replace(picture.strip(), "")
    hosts = set(re.findall(r"https?://([^:/\"\s`]+)", without_pictures))
    assert hosts <= {"127.0.0.1"}
    assert not re.search(r"/(home|Users|root|tmp|work)/", without_pictures)
