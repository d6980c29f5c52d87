"""`make bench-gym`: decisions a second on one core, with a policy that chooses at random: one
environment, many at once, and many of which each has a run of its own; one JSON object."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np

import hybrid_gym
from tests.bench import report

NAME = "hybrid/Scheduling-v0"
SECONDS = 5.0  # of each measurement, at least, and at least one episode
TASKS = 4096  # of an episode


def main() -> None:
    given = report.parser("bench-gym", __doc__ or "").parse_args()
    measured = {
        "one": one_by_one(),
        **{f"{count} at once": at_once(count, None) for count in (256, 1024, 4096)},
        "256 runs at once": at_once(256, 256),
    }
    report.publish("bench-gym", measured, table(measured), write=given.write)


def one_by_one() -> dict[str, Any]:
    report.progress("one environment")
    env = gymnasium.make(NAME, tasks=TASKS, disable_env_checker=True).unwrapped
    assert isinstance(env, hybrid_gym.SchedulingEnv)
    actions = np.random.default_rng(1).integers(0, int(env.action_space.n), TASKS)
    decided, began, wall = 0, time.process_time(), time.perf_counter()
    while time.process_time() - began < SECONDS:
        env.reset(seed=decided)
        for action in actions:
            env.step(action)
        decided += TASKS
    return figures(1, 1, decided, began, wall)


def at_once(count: int, runs: int | None) -> dict[str, Any]:
    """Whole episodes, with making the tasks of the next."""
    report.progress(f"{count} environments, {runs or 'few'} runs")
    envs = gymnasium.make_vec(NAME, num_envs=count, tasks=TASKS, runs=runs)
    assert isinstance(envs, hybrid_gym.SchedulingVectorEnv)
    random = np.random.default_rng(1)
    actions = [random.integers(0, int(envs.single_action_space.n), count) for _ in range(64)]
    decided, began, wall = 0, time.process_time(), time.perf_counter()
    envs.reset(seed=1)
    while time.process_time() - began < SECONDS:
        for step in range(TASKS):
            envs.step(actions[step % len(actions)])
        decided += count * TASKS
    return figures(count, envs.runs, decided, began, wall)


def figures(count: int, runs: int, decided: int, began: float, wall: float) -> dict[str, Any]:
    """Seconds of CPU, which other programs on the machine change less."""
    cpu, clock = time.process_time() - began, time.perf_counter() - wall
    return {
        "environments": count,
        "runs": runs,
        "decisions": decided,
        "cpu_s": round(cpu, 2),
        "wall_s": round(clock, 2),
        "decisions_per_cpu_s": round(decided / cpu),
        "decisions_per_wall_s": round(decided / clock),
    }


def table(measured: dict[str, Any]) -> report.Table:
    head = ("environments", "different runs", "decisions / s of one core", "by wall clock")
    return [
        head,
        *(
            (
                f"{each['environments']:,}",
                f"{each['runs']:,}",
                f"{each['decisions_per_cpu_s']:,}",
                f"{each['decisions_per_wall_s']:,}",
            )
            for each in measured.values()
        ),
    ]


if __name__ == "__main__":
    main()
