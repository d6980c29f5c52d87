"""Train a scheduler with PPO of Stable-Baselines3:

python clients/examples/train_sb3.py --decisions 500000 --out trained_sb3.onnx
hybrid up --add trained_sb3.onnx
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv
from torch import nn
from trained_policy import earliest_finish, export, mean_turnaround, write_curve

import hybrid_gym


class VectorEnv(VecEnv):
    """Our environments, as Stable-Baselines3 wants them."""

    def __init__(self, envs: hybrid_gym.SchedulingVectorEnv) -> None:
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self.envs, self.render_mode = envs, None
        self._seed: int | None = None

    def reset(self) -> Any:
        observations, _ = self.envs.reset(seed=self._seed)
        self._seed = None
        return observations

    def seed(self, seed: int | None = None) -> list[int | None]:
        self._seed = seed
        return [seed] * self.num_envs

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> Any:
        observations, rewards, _, ended, details = self.envs.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if ended.all():
            for info, last in zip(infos, details["final_obs"], strict=True):
                info |= {"terminal_observation": last, "TimeLimit.truncated": True}
        return observations, rewards.astype(np.float32), ended, infos

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, name, None)] * self.num_envs

    def set_attr(self, name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError("all environments are one object")

    def env_method(self, name: str, *arguments: Any, indices: Any = None, **options: Any) -> Any:
        raise NotImplementedError("all environments are one object")

    def env_is_wrapped(self, wrapper: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


class Scores(nn.Module):
    """The network alone: a score for each device."""

    def __init__(self, agent: PPO) -> None:
        super().__init__()
        self.policy = agent.policy

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        latent = self.policy.mlp_extractor.forward_actor(observations)
        scores: torch.Tensor = self.policy.action_net(latent)
        return scores


class Curve(BaseCallback):
    """The mean turnaround on fresh runs, before training and after every round of it."""

    def __init__(self, spec: Any, every: int, tasks: int) -> None:
        super().__init__()
        self.points: list[tuple[int, float]] = []
        self._spec, self._every, self._tasks, self._round = spec, every, tasks, 0

    def _on_rollout_start(self) -> None:
        if self._round % self._every == 0:
            self.measure()
        self._round += 1

    def _on_step(self) -> bool:
        return True

    def measure(self) -> None:
        turnaround = mean_turnaround(
            lambda rows: self.model.predict(rows, deterministic=True)[0],
            self._spec,
            tasks=self._tasks,
        )
        self.points.append((self.num_timesteps, turnaround))
        print(f"{self.num_timesteps:>9,} decisions: mean turnaround {turnaround:.3f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", help="a run spec, YAML or JSON")
    parser.add_argument("--decisions", type=int, default=500_000)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--tasks", type=int, default=1000, help="of the runs to measure on")
    parser.add_argument("--measure-every", type=int, default=10, help="rounds of training")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("trained_sb3.onnx"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    envs = hybrid_gym.SchedulingVectorEnv(args.envs, args.spec, tasks=256)
    agent = PPO(
        "MlpPolicy",
        VectorEnv(envs),
        n_steps=64,
        batch_size=min(1024, 64 * args.envs),
        n_epochs=4,
        gamma=0.95,
        learning_rate=1e-3,
        policy_kwargs={"net_arch": [64, 64]},
        seed=args.seed,
        device="cpu",
    )
    rule = mean_turnaround(earliest_finish, args.spec, tasks=args.tasks)
    print(f"earliest finish: mean turnaround {rule:.3f} s")
    curve = Curve(args.spec, args.measure_every, args.tasks)
    agent.learn(args.decisions, callback=curve)
    curve.measure()
    write_curve(curve.points, args.out.with_suffix(".csv"))
    export(Scores(agent), envs.single_observation_space.shape[0], envs.time_scale, args.out)
    print(f"wrote {args.out}; put it into the arena with: hybrid up --add {args.out}")


if __name__ == "__main__":
    main()
