"""One arena for these tests, with a finished run and a scheduler that somebody plugged in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser

from tests.dashboard.browser import DESK, Viewer, chromium
from tests.e2e.arena import QUICK, RULES, ArenaProcess

PLUGGED_IN = """
import numpy as np

from services.scheduler.policy import Policy
from shared.tasks import Decisions


class Halves(Policy):
    \"\"\"Half of every task on a GPU.\"\"\"

    name = "halves"

    def decide(self, tasks, spec):
        return Decisions(gpu_fraction=np.full(len(tasks), 0.5))
"""
EVERYBODY = (*RULES, "halves", "hybrid_ml", "rl_agent")
TASKS = 1200


@pytest.fixture(scope="package")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArenaProcess]:
    folder = tmp_path_factory.mktemp("dashboard")
    policy = folder / "halves.py"
    policy.write_text(PLUGGED_IN)
    started = ArenaProcess(folder / "data", "--idle", "--add", str(policy))
    yield started
    assert started.stop() == 0


@pytest.fixture(scope="package")
def run(arena: ArenaProcess) -> str:
    """A finished one: what is shown of it stays as it is."""
    run = arena.start_run(
        tasks=TASKS,
        pace="max",
        seed=11,
        schedulers=EVERYBODY,
        learning=QUICK,
        name="the finished one",
    )
    arena.complete(run)
    return run


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def viewer(browser: Browser, arena: ArenaProcess) -> Iterator[Viewer]:
    with looking(browser, arena) as found:
        yield found


@contextmanager
def looking(browser: Browser, arena: ArenaProcess) -> Iterator[Viewer]:
    context = browser.new_context(viewport=DESK)  # type: ignore[arg-type]
    found = Viewer(context.new_page(), arena.announced["url"])
    yield found
    context.close()
    assert found.complaints == []
