"""Many runs of the arena at once, as Gymnasium's vectorised environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hybrid_gym.run_specs import EPISODE_TASKS, SEEDS, AnySpec, observation_space, read_spec
from shared.domain.learning.agent_observation import AgentObserver, Numbers
from shared.domain.learning.parallel_clusters import ParallelClusters, ParallelRuns
from shared.domain.tasks import Floats, Integers

# The most different runs among the environments; environments of one run get the same tasks.
MOST_RUNS = 64

Flags = NDArray[np.bool_]


class SchedulingVectorEnv(VectorEnv[Numbers, Integers, np.ndarray]):
    """`SchedulingEnv` many times; all episodes begin and end together.

    There are `runs` different runs (left out: the largest number up to 64 that divides
    `num_envs`): environment i has run i % runs. After `reset(seed=s)` run k has seed s + k, later
    ones draw theirs. At the end of an episode the next one begins in the same step, and `info` has
    the last observation as `final_obs`.

    Raises `NotParallel` for specs with dependencies, wide tasks or noise: use
    `make_vec(..., vectorization_mode="sync")` for these.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        spec: AnySpec = None,
        tasks: int = EPISODE_TASKS,
        runs: int | None = None,
    ) -> None:
        self.num_envs, self.run_spec, self.tasks = num_envs, read_spec(spec), tasks
        self.runs = _runs_of(num_envs) if runs is None else runs
        if num_envs % self.runs:
            raise ValueError(f"num_envs ({num_envs}) is not a multiple of runs ({self.runs})")
        self._observer = AgentObserver(self.run_spec)
        self.time_scale = self._observer.time_scale
        self.single_observation_space = observation_space(self._observer)
        self.single_action_space = Discrete(self._observer.devices)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._never = np.zeros(num_envs, np.bool_)

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Numbers, dict[str, Any]]:
        if isinstance(seed, list):
            raise ValueError("seed: one number, that of the first run; the others count up from it")
        if seed is not None:
            super().reset(seed=seed)
            seeds = list(range(seed, seed + self.runs))
        else:
            seeds = self.np_random.integers(SEEDS, size=self.runs).tolist()
        self._begin(seeds)
        return self._observe(), {"run_seed": self._run_seeds}

    def step(
        self, actions: Integers
    ) -> tuple[Numbers, Floats, Flags, Flags, dict[str, Any]]:  # fmt: skip
        outcomes = self._clusters.place(np.asarray(actions))
        rewards = outcomes.penalty / -self.time_scale
        info: dict[str, Any] = {}
        truncated = self._never
        if self._clusters.complete:
            truncated = np.ones(self.num_envs, np.bool_)
            info = {"final_obs": self._observe(), "_final_obs": truncated}
            self._begin(self.np_random.integers(SEEDS, size=self.runs).tolist())
            info |= {"run_seed": self._run_seeds}
        info |= {
            "turnaround": outcomes.turnaround,
            "energy": outcomes.energy,
            "cost": outcomes.cost,
        }
        return self._observe(), rewards, self._never, truncated, info

    def action_masks(self) -> Flags:
        """The devices (columns) that can run the current task of each environment."""
        return self._clusters.possible()

    def _begin(self, seeds: list[int]) -> None:
        runs = ParallelRuns.of(self.run_spec, seeds, self.tasks, self._observer)
        self._clusters = ParallelClusters(self.run_spec, self._observer, runs, self.num_envs)
        self._run_seeds = np.tile(seeds, self.num_envs // self.runs)

    def _observe(self) -> Numbers:
        """A new array: callers may keep it."""
        out = np.empty((self.num_envs, self._observer.width), np.float32)
        self._clusters.observe(out)
        return out


def _runs_of(num_envs: int) -> int:
    return next(runs for runs in range(min(num_envs, MOST_RUNS), 0, -1) if num_envs % runs == 0)
