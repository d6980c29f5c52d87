"""The gym's environments, compared with each other and with the services of the arena."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import onnxruntime
import pytest
from gymnasium.utils.env_checker import check_env

import hybrid_gym
from services.scheduler.cluster_worker import ClusterCopy, place
from services.scheduler.onnx_policy import load_onnx
from services.simulator.simulation import Simulation
from shared.domain.learning.parallel_clusters import NotParallel
from shared.domain.spec import RunSpec
from shared.domain.workload import Cursor, generate
from shared.errors import SpecError
from shared.messages import batches
from shared.messages.batches import Batch
from shared.messages.envelope import Envelope
from tests.unit.clients.networks import write_network

TASKS = 200
BUSY = {"workload": {"arrival_rate": 40}}
TWO_NODES = {
    "devices": [
        {"type": "cpu", "count": 2, "node": "a"},
        {"type": "big", "node": "a", "speed": 3, "memory_mb": 4000},
        {"type": "small", "node": "b", "speed": 1.5, "memory_mb": 500, "count": 2},
        {"type": "cpu", "node": "b"},
    ]
}
PARALLEL: dict[str, dict[str, Any]] = {
    "busy": BUSY,
    "too large for a GPU": {"cluster": {"gpu_memory_mb": 500}},
    "too large, and fails": {
        "cluster": {"gpu_memory_mb": 500},
        "physics": {"memory_policy": "fail"},
    },
    "too large, and is paged": {
        "cluster": {"gpu_memory_mb": 500},
        "physics": {"memory_policy": "page", "split": "overlapped"},
    },
    "two nodes, late decisions": {"cluster": TWO_NODES, "physics": {"decision_s": 0.01}},
    "another objective": {**BUSY, "objective": {"turnaround": 1, "energy": 0.7, "cost": 0.2}},
}
ONE_BY_ONE: dict[str, dict[str, Any]] = {
    "noise": {**BUSY, "physics": {"noise": 0.5}},
    "dependencies": {"workload": {"dependencies": {"probability": 0.5}}},
    "wide": {"workload": {"widths": [{"width": 1, "weight": 1}, {"width": 2, "weight": 1}]}},
}
BOTH = PARALLEL | ONE_BY_ONE
COLUMNS = ("turnaround", "energy", "cost")


def network_of(spec: dict[str, Any], folder: Path) -> Path:
    env = hybrid_gym.SchedulingEnv(spec)
    (inputs,) = env.observation_space.shape
    return write_network(folder / "drawn.onnx", inputs, int(env.action_space.n))


def in_the_pipeline(spec: dict[str, Any], seed: int, network: Path) -> dict[str, list[float]]:
    """What the network's results are, decided and simulated in batches."""
    run_spec = RunSpec.parse({**spec, "seed": seed})
    policy, cursor = load_onnx(network), Cursor()
    copy, simulation = ClusterCopy.new(run_spec), Simulation.new(run_spec)
    found: dict[str, list[float]] = {name: [] for name in COLUMNS}
    for number in range(4):
        tasks, cursor = generate(run_spec, cursor, TASKS // 4)
        envelope = Envelope(kind="tasks", run="r", batch=number, published_at=0.0)
        batch = Batch(envelope, batches.task_rows(tasks))
        prepared = policy.prepare(tasks, run_spec.without_noise)
        decided, copy = place(batch, policy, copy, run_spec, prepared, 0)
        rows, simulation = simulation.advance(decided.rows)
        for name in COLUMNS:
            found[name] += rows.column(name).to_pylist()
    return found


def choose(session: onnxruntime.InferenceSession, observation: Any) -> int:
    (scores,) = session.run(None, {"observation": observation[None]})
    return int(scores[0].argmax())


def in_the_environment(spec: dict[str, Any], seed: int, network: Path) -> dict[str, list[float]]:
    env, session = hybrid_gym.SchedulingEnv(spec, TASKS), onnxruntime.InferenceSession(network)
    observation, _ = env.reset(seed=seed)
    found: dict[str, list[float]] = {name: [] for name in COLUMNS}
    ended = False
    while not ended:
        action = np.int64(choose(session, observation))
        observation, _, _, ended, info = env.step(action)
        for name in COLUMNS:
            found[name].append(info[name])
    return found


@pytest.mark.parametrize("spec", BOTH.values(), ids=BOTH)
def test_a_policy_gets_the_same_results_as_in_the_pipeline(
    spec: dict[str, Any], tmp_path: Path
) -> None:
    network = network_of(spec, tmp_path)
    expected = in_the_pipeline(spec, 7, network)
    assert in_the_environment(spec, 7, network) == expected
    assert max(expected["turnaround"]) > min(expected["turnaround"])


@pytest.mark.parametrize("spec", PARALLEL.values(), ids=PARALLEL)
def test_environments_at_once_are_as_one_by_one(spec: dict[str, Any]) -> None:
    """Observations, rewards and results, over the end of an episode."""
    envs = hybrid_gym.SchedulingVectorEnv(4, spec, tasks=30, runs=2)
    seeds = [7, 8, 7, 8]
    singles = [hybrid_gym.SchedulingEnv(spec, tasks=30) for _ in seeds]
    together, info = envs.reset(seed=7)
    alone = [env.reset(seed=seed)[0] for env, seed in zip(singles, seeds, strict=True)]
    assert info["run_seed"].tolist() == seeds
    random = np.random.default_rng(1)
    for step in range(40):
        assert np.array_equal(together, np.array(alone))
        masks = np.array([env.action_masks() for env in singles])
        assert np.array_equal(envs.action_masks(), masks)
        actions = random.integers(0, int(envs.single_action_space.n), 4)
        together, rewards, _, ended, info = envs.step(actions)
        one_by_one = [env.step(action) for env, action in zip(singles, actions, strict=True)]
        assert rewards.tolist() == [each[1] for each in one_by_one]
        for name in COLUMNS:
            assert info[name].tolist() == [each[4][name] for each in one_by_one]
        assert ended.tolist() == [each[3] for each in one_by_one] == [step == 29] * 4
        alone = [each[0] for each in one_by_one]
        if step == 29:
            assert np.array_equal(info["final_obs"], np.array(alone))
            later = info["run_seed"].tolist()
            alone = [env.reset(seed=s)[0] for env, s in zip(singles, later, strict=True)]


@pytest.mark.parametrize("spec", ONE_BY_ONE.values(), ids=ONE_BY_ONE)
def test_what_cannot_be_simulated_at_once_is_refused(spec: dict[str, Any]) -> None:
    envs = gymnasium.make_vec("hybrid/Scheduling-v0", num_envs=2, spec=spec)
    with pytest.raises(NotParallel, match="one by one"):
        envs.reset(seed=1)
    sync = gymnasium.make_vec(
        "hybrid/Scheduling-v0", num_envs=2, vectorization_mode="sync", spec=spec
    )
    assert sync.reset(seed=1)[0].shape == (2, *sync.single_observation_space.shape)


@pytest.mark.parametrize("name", ["Scheduling", "hpc", "gpu_friendly"])
def test_registered_environments_pass_gymnasiums_checks(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(f"hybrid/{name}-v0", tasks=20).unwrapped)


def test_the_reward_is_what_agents_minimise() -> None:
    """With the objective of turnaround alone: minus the turnaround, in mean task times."""
    env = hybrid_gym.SchedulingEnv({"objective": {"turnaround": 1, "energy": 0, "cost": 0}}, 5)
    env.reset(seed=3)
    _, reward, _, _, info = env.step(np.int64(0))
    assert reward == -info["turnaround"] / env.time_scale


def test_episodes_without_a_seed_differ_and_can_be_repeated() -> None:
    env = hybrid_gym.SchedulingEnv(None, 5)
    seeds = [[env.reset(seed=s)[1], env.reset()[1], env.reset()[1]] for s in (1, 1)]
    assert seeds[0] == seeds[1]
    assert len({each["run_seed"] for each in seeds[0]}) == 3


def test_runs_of_submitted_tasks_are_refused() -> None:
    with pytest.raises(SpecError, match="submitted"):
        hybrid_gym.SchedulingEnv({"workload": {"source": "submitted"}})


def test_the_package_needs_no_broker_no_store_and_no_torch() -> None:
    code = "import hybrid_gym, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    names = {name.partition(".")[0] for name in loaded.stdout.split()}
    assert "hybrid_gym" in names
    assert not names & {"nats", "faststream", "clickhouse_connect", "chdb", "torch", "pyarrow"}
