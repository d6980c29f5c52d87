"""Gymnasium environments on the arena's workloads, times and virtual clusters: what a policy gets
here, it gets in a run of the same spec and seed, bit for bit.

    import gymnasium, hybrid_gym
    env = gymnasium.make("hybrid/Scheduling-v0", spec={"workload": {"preset": "hpc"}})
    envs = gymnasium.make_vec("hybrid/Scheduling-v0", num_envs=1024)

`hybrid/PRESET-v0` has each preset of workloads, such as `hybrid/gpu_friendly-v0`.
"""

from __future__ import annotations

import gymnasium

from hybrid_gym.scheduling_env import SchedulingEnv
from hybrid_gym.vector_env import SchedulingVectorEnv
from shared.domain.spec_parts.workload_presets import PRESETS

__all__ = ["SchedulingEnv", "SchedulingVectorEnv"]


def _register(name: str, **options: object) -> None:
    gymnasium.register(
        f"hybrid/{name}-v0",
        entry_point="hybrid_gym.scheduling_env:SchedulingEnv",
        vector_entry_point="hybrid_gym.vector_env:SchedulingVectorEnv",
        kwargs=options,
    )


_register("Scheduling")
for _preset in PRESETS:
    _register(_preset, spec={"workload": {"preset": _preset}})
