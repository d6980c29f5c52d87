"""Learners that installed packages offer as entry points."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.trainer.learner_registry import LearnerRegistry
from shared.domain.schedulers import LEARNERS

MODULE = """
from services.trainer.learner import Learner


class Own(Learner):
    name = "{name}"

    def pretrain(self, tasks):
        return None

    def learn(self, model, results, new, version):
        return None
"""


def install(folder: Path, package: str, name: str) -> None:
    """What pip leaves of a package."""
    (folder / f"{package}.py").write_text(MODULE.format(name=name))
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[hybrid.learners]\n{name} = {package}:Own\n")


def test_an_installed_learner_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "with_a_learner", "thrifty")
    monkeypatch.syspath_prepend(tmp_path)
    assert LearnerRegistry("").learners["thrifty"].__module__ == "with_a_learner"


def test_one_that_cannot_be_loaded_or_would_replace_a_built_in_one_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "takes_a_name", "bandit")
    install(tmp_path, "cannot_be_imported", "absent")
    (tmp_path / "cannot_be_imported.py").write_text("import nothing_of_this_name")
    monkeypatch.syspath_prepend(tmp_path)
    learners = LearnerRegistry("network.onnx").learners
    assert set(learners) == set(LEARNERS)
    assert learners["bandit"].__module__ == "services.trainer.learners.bandit"
