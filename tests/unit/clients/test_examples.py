"""The training examples, for a few steps, and the networks that they write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from services.scheduler import policy as policies
from services.scheduler.cluster_worker import ClusterCopy, place
from shared.domain.spec import RunSpec
from shared.domain.workload import Cursor, generate
from shared.messages import batches
from shared.messages.batches import Batch
from shared.messages.envelope import Envelope

EXAMPLES = Path("clients/examples").resolve()


@pytest.mark.parametrize("script", ["train_sb3.py", "train_ppo.py"])
def test_an_example_trains_a_policy_that_a_worker_can_use(script: str, tmp_path: Path) -> None:
    file = tmp_path / "trained.onnx"
    few = ("--decisions", "300", "--envs", "4", "--tasks", "20", "--measure-every", "1")
    command = [sys.executable, str(EXAMPLES / script), *few, "--out", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mean turnaround" in done.stdout
    assert len(file.with_suffix(".csv").read_text().splitlines()) >= 3
    spec = RunSpec.parse({})
    policy = policies.load(str(file))
    assert isinstance(policy, policies.ClusterPolicy)
    assert policy.name == "trained"
    tasks, _ = generate(spec, Cursor(), 20)
    batch = Batch(Envelope("tasks", "r", 0, 0.0), batches.task_rows(tasks))
    prepared = policy.prepare(tasks, spec)
    decided, _ = place(batch, policy, ClusterCopy.new(spec), spec, prepared)
    assert decided.rows.num_rows == 20
