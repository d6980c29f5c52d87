"""One arena for these tests, with a finished run and a scheduler from a plug-in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.dashboard.browser import DESKTOP, Viewer, chromium, new_context
from tests.e2e.arena import QUICK, RULES, ArenaProcess

PLUGIN = """
import numpy as np

FAULTY_SEED = {faulty_seed}

from services.scheduler.policy import Policy
from shared.domain.tasks import Decisions


class Halves(Policy):
    \"\"\"Half of every task on a GPU.\"\"\"

    name = "halves"

    def decide(self, tasks, spec):
        share = 1.7 if spec.seed == FAULTY_SEED else 0.5
        return Decisions(gpu_fraction=np.full(len(tasks), share))
"""
FAULTY_SEED = 1717  # in a run with this seed the plug-in fails
ALL_SCHEDULERS = (*RULES, "halves", "hybrid_ml", "rl_agent")
TASKS = 1200
RACK_TASKS = 800


@pytest.fixture(scope="package")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    policy = tmp_path_factory.mktemp("plugin") / "halves.py"
    policy.write_text(PLUGIN.format(faulty_seed=FAULTY_SEED))
    return policy


@pytest.fixture(scope="package")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the gateway looks for reports of the lab."""
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="package")
def arena(
    tmp_path_factory: pytest.TempPathFactory, plugin: Path, reports: Path
) -> Iterator[ArenaProcess]:
    folder = tmp_path_factory.mktemp("dashboard")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_REPORTS_DIR", str(reports))
        started = ArenaProcess(folder / "data", "--idle", "--add", str(plugin))
    yield started
    assert started.stop() == 0


@pytest.fixture(scope="package")
def run(arena: ArenaProcess) -> str:
    """A run that is completed and stored, so that its figures no longer change."""
    run = arena.start_run(
        tasks=TASKS,
        pace="max",
        seed=11,
        schedulers=ALL_SCHEDULERS,
        learning=QUICK,
        name="the finished one",
    )
    arena.complete(run, timeout=360)
    wait_until_stored(arena, run, TASKS)
    return run


@pytest.fixture(scope="package")
def rack(arena: ArenaProcess) -> str:
    """A completed run of the rules on the platform `rack`, with noise and tasks that fail."""
    platforms = {each["name"]: each["spec"] for each in arena.http.get("/api/platforms").json()}
    run = arena.start_run(
        **platforms["rack"],
        tasks=RACK_TASKS,
        pace="max",
        seed=11,
        physics={"noise": 0.2, "memory_policy": "fail"},
        workload={"arrival_rate": 40},
    )
    arena.complete(run, timeout=360)
    wait_until_stored(arena, run, RACK_TASKS, len(RULES))
    return run


def wait_until_stored(
    arena: ArenaProcess, run: str, tasks: int, schedulers: int = len(ALL_SCHEDULERS)
) -> None:
    """The gateway reports a result before ClickHouse has it."""
    query = f"SELECT count() AS n FROM scheduler_results FINAL WHERE run = '{run}'"
    expected = [{"n": tasks * schedulers}]
    arena.wait_for(run, lambda _: arena.sql(query) == expected)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def viewer(browser: Browser, arena: ArenaProcess) -> Iterator[Viewer]:
    with open_viewer(browser, arena) as viewer:
        yield viewer


@contextmanager
def open_viewer(
    browser: Browser, arena: ArenaProcess, size: dict[str, int] = DESKTOP
) -> Iterator[Viewer]:
    context = new_context(browser, size)
    viewer = Viewer(context.new_page(), arena.announced["url"])
    yield viewer
    context.close()
    assert viewer.errors == []
