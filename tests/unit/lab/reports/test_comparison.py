"""The comparison of two runs of the same experiment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.lab.experiments.declaration import ExperimentError
from services.lab.reports.comparison import write_comparison
from tests.unit.lab.reports.synthetic import Synthetic, declare
from tests.unit.lab.reports.test_report import DPI, page_of, text_of

FEW = {"oracle": 1.0, "greedy": 1.4, "rl_agent": 1.6}


def folder_of(path: Path, factors: dict[str, float], noise: float = 0.01, **changes: Any) -> Path:
    return Synthetic(
        declare(measure="time", **changes), factors, noise=noise, sample=10, stretches=10
    ).write(path)


def compared(tmp_path: Path, *folders: Path) -> dict[str, Any]:
    files = write_comparison(list(folders), tmp_path / "out", dpi=DPI)
    assert {"comparison.html", "comparison.pdf", "comparison.json"} <= {f.name for f in files}
    page_of(tmp_path / "out" / "comparison.html")
    assert text_of(tmp_path / "out" / "comparison.pdf")[0] >= 1
    numbers: dict[str, Any] = json.loads((tmp_path / "out" / "comparison.json").read_text())
    return numbers


def test_the_same_twice_is_the_same(tmp_path: Path) -> None:
    numbers = compared(tmp_path, folder_of(tmp_path / "a", FEW), folder_of(tmp_path / "b", FEW))
    assert numbers["summary"] == [
        "B has the same settings, version and machine as A.",
        "Total time of B over A, identical: greedy, rl_agent and oracle.",
    ]
    assert numbers["settings"] == {"B": []}


def test_a_difference_is_measured_and_the_setting_named(tmp_path: Path) -> None:
    faster = {**FEW, "rl_agent": 1.2}
    first = folder_of(tmp_path / "a", FEW)
    second = folder_of(tmp_path / "b", faster, spec={"cluster": {"gpus": 2}})
    numbers = compared(tmp_path, first, second)
    # 1.2 over 1.6, with the same noise in both.
    assert "changed: rl_agent 0.750 [0.750, 0.750] times" in numbers["summary"][1]
    assert numbers["settings"]["B"] == [["cluster.gpus", 4, 2]]
    assert "1 setting" in numbers["summary"][0]
    change = next(c for c in numbers["changes"] if c["scheduler"] == "rl_agent")
    assert change["ratio"]["mean"] == pytest.approx(0.75)
    assert change["significant"]


def test_noise_is_not_called_a_difference(tmp_path: Path) -> None:
    first = folder_of(tmp_path / "a", FEW, noise=0.0)
    second = folder_of(tmp_path / "b", FEW, noise=0.2)
    numbers = compared(tmp_path, first, second)
    summary = " ".join(numbers["summary"])
    assert "not distinguished: greedy and rl_agent" in summary
    assert "changed" not in summary


def test_only_shared_seeds_are_paired(tmp_path: Path) -> None:
    first = folder_of(tmp_path / "a", FEW, seeds=(1, 2, 3))
    second = folder_of(tmp_path / "b", FEW, seeds=(3, 4))
    third = folder_of(tmp_path / "c", FEW, seeds=(8, 9))
    numbers = compared(tmp_path, first, second, third)
    assert {change["ratio"]["n"] for change in numbers["changes"]} == {1}
    summary = " ".join(numbers["summary"])
    assert "B and A share one seed only" in summary
    assert "C and A share no seed" in summary
    assert ["seeds", [1, 2, 3], [8, 9]] in numbers["settings"]["C"]


def test_other_numbers_of_tasks_are_pointed_out(tmp_path: Path) -> None:
    first = folder_of(tmp_path / "a", FEW)
    second = folder_of(tmp_path / "b", FEW, judge_from=500)
    summary = " ".join(compared(tmp_path, first, second)["summary"])
    assert "B judges 1,500 tasks, A 2,000" in summary


def test_one_folder_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="two folders"):
        write_comparison([tmp_path], tmp_path / "out")
