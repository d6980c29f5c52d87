"""Advice, the way a user gets it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from hybrid_client import Advice
from tests.e2e.arena import ArenaProcess, hybrid

NAMES = "eft,cpu_only,oracle,clairvoyant"


def test_a_clear_case_is_decided_on_generated_jobs(
    shared_arena: ArenaProcess, tmp_path: Path
) -> None:
    folder = tmp_path / "advice"
    given = ["--schedulers", NAMES, "--tasks", "200", "--load", "0.7", "--budget", "5"]
    place = ["--data-dir", str(shared_arena.folder), "--out", str(folder)]
    done = hybrid("advise", *given, *place, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["decided"], told["recommended"]) == (True, "eft")
    answer = told["answer"]
    # Against the runs themselves: what the other one waits longer, per task.
    first = answer["runs"][:4]
    waits = {
        name: [
            shared_arena.sql(
                f"SELECT avg(wait) AS wait FROM scheduler_results FINAL WHERE run = '{run}' "
                f"AND scheduler = '{name}'"
            )[0]["wait"]
            for run in first
        ]
        for name in ("eft", "cpu_only")
    }
    expected = sum(waits["cpu_only"]) / 4 - sum(waits["eft"]) / 4
    (loss,) = answer["losses"]
    assert loss["wait_s"]["mean"] == pytest.approx(expected)
    compared = Advice(told).compared()  # as a notebook shows it
    assert compared["standing"].to_dict() == {"eft": "best", "cpu_only": "worse"}
    assert compared["more_wait_s"].to_dict() == pytest.approx({"eft": 0, "cpu_only": expected})
    assert 1 < compared.loc["cpu_only", "ratio_low"] < compared.loc["cpu_only", "ratio"]
    assert {each["change"] for each in answer["changed"]} >= {"noise 30%", "mostly money"}
    assert answer["bound"]["makespan"]["mean"] >= 1
    page = (folder / "report.html").read_text()
    assert "use eft" in page
    assert (folder / "report.pdf").stat().st_size > 1000


def test_a_few_noisy_jobs_tell_nothing(shared_arena: ArenaProcess, tmp_path: Path) -> None:
    draw, trace = random.Random(3), tmp_path / "few.csv"
    lines = [f"{draw.uniform(50, 400):.0f},0.5,10,{5 * n}\n" for n in range(24)]
    trace.write_text("size,compute_intensity,memory_required,arrival_time\n" + "".join(lines))
    given = ["--trace", str(trace), "--noise", "0.5", "--schedulers", "eft,gpu_only,oracle"]
    place = ["--data-dir", str(shared_arena.folder), "--out", str(tmp_path / "advice")]
    done = hybrid("advise", *given, *place, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    # On an idle node with equal GPUs both do the same: that is told; which is faster never is.
    assert told["recommended"] in ("eft", "gpu_only")
    assert "oracle" not in {each["scheduler"] for each in told["answer"]["verdict"]["compared"]}
    if not told["decided"]:
        assert "trace" in told["what_would_tell"]
