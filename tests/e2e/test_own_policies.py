"""Policies of users in the race: from a package of its own, and a network trained in the gym."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import hybrid_gym
from hybrid_client import Arena
from tests.e2e.arena import ArenaProcess
from tests.unit.clients.networks import write_network

TASKS, SEED = 400, 11

PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "last-device"
version = "1.0"

[project.entry-points."hybrid.policies"]
last_device = "last_device:LastDevice"
broken = "last_device:Broken"
"""
MODULE = '''
from services.scheduler.policy import ClusterPolicy


class LastDevice(ClusterPolicy):
    """Gives every task to the last device."""

    name = "last_device"

    def decide(self, tasks, cluster, spec):
        for _ in cluster.arrivals():
            cluster.place(len(spec.platform) - 1)
        return cluster.decisions()


class Broken(ClusterPolicy):
    """Cannot be made: it has no `decide`."""

    name = "broken"
'''


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArenaProcess]:
    """With the package installed into a folder that only this arena sees."""
    folder = tmp_path_factory.mktemp("own")
    source, target = folder / "source", folder / "installed"
    source.mkdir()
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "last_device.py").write_text(MODULE)
    install = ("--quiet", "--no-deps", "--no-build-isolation", "--target", str(target))
    command = [sys.executable, "-m", "pip", "install", *install, str(source)]
    subprocess.run(command, check=True, capture_output=True)
    env = hybrid_gym.SchedulingEnv()
    network = write_network(
        folder / "drawn.onnx", env.observation_space.shape[0], int(env.action_space.n)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(target))
        started = ArenaProcess(folder / "data", "--idle", "--pack", "--add", str(network))
    yield started
    assert started.stop() == 0


def test_an_installed_policy_and_a_network_compete(arena: ArenaProcess) -> None:
    """The network's results are those of the gym, to the last bit."""
    with Arena(str(arena.http.base_url)) as client:
        assert {"last_device", "drawn"} < set(client.schedulers().index)
        assert "broken" not in client.schedulers().index
        names = ["last_device", "drawn", "cpu_only"]
        run = client.start(tasks=TASKS, pace="max", seed=SEED, schedulers=names)
        race = run.wait(progress=False).race()
        results = run.results("drawn")
    assert race["results"].tolist() == [TASKS] * 3
    assert race.loc["last_device", "avg_turnaround"] == race.loc["cpu_only", "avg_turnaround"]
    columns = ["turnaround", "energy", "cost"]
    expected = in_the_gym(arena.folder.parent / "drawn.onnx", TASKS, SEED, columns)
    assert np.array_equal(results[columns].to_numpy(), expected)


def in_the_gym(network: Path, tasks: int, seed: int, columns: list[str]) -> np.ndarray:
    env, session = hybrid_gym.SchedulingEnv(tasks=tasks), onnxruntime.InferenceSession(network)
    observation, _ = env.reset(seed=seed)
    found = []
    for _ in range(tasks):
        (scores,) = session.run(None, {"observation": observation[None]})
        observation, _, _, _, info = env.step(scores[0].argmax())
        found.append([info[name] for name in columns])
    return np.array(found)


def test_what_is_left_out_is_said(arena: ArenaProcess) -> None:
    said = (arena.folder.parent / "data.stderr").read_text()
    assert "the installed policy broken is left out" in said
