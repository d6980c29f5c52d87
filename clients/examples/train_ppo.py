"""Train a scheduler with PPO in one file, in the style of CleanRL, to be read from top to bottom:

python clients/examples/train_ppo.py --decisions 500000 --out trained_ppo.onnx
hybrid up --add trained_ppo.onnx
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical
from trained_policy import earliest_finish, export, mean_turnaround, write_curve

import hybrid_gym


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", help="a run spec, YAML or JSON")
    parser.add_argument("--decisions", type=int, default=500_000)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=64, help="of each environment in a round")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--minibatches", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--gamma", type=float, default=0.95)
    parser.add_argument("--gae-lambda", type=float, default=0.95)
    parser.add_argument("--clip", type=float, default=0.2)
    parser.add_argument("--entropy", type=float, default=0.0)
    parser.add_argument("--value-weight", type=float, default=0.5)
    parser.add_argument("--gradient-norm", type=float, default=0.5)
    parser.add_argument("--tasks", type=int, default=1000, help="of the runs to measure on")
    parser.add_argument("--measure-every", type=int, default=10, help="rounds of training")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("trained_ppo.onnx"))
    return parser.parse_args()


def layer(inputs: int, outputs: int, gain: float = np.sqrt(2)) -> nn.Linear:
    linear = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(linear.weight, gain)
    nn.init.zeros_(linear.bias)
    return linear


def network(inputs: int, outputs: int, last_gain: float) -> nn.Sequential:
    return nn.Sequential(
        layer(inputs, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), layer(64, outputs, last_gain)
    )


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    envs = hybrid_gym.SchedulingVectorEnv(args.envs, args.spec, tasks=256)
    inputs, devices = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
    actor, critic = network(inputs, devices, 0.01), network(inputs, 1, 1.0)
    parameters = [*actor.parameters(), *critic.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=args.learning_rate, eps=1e-5)

    def choose(rows: Any) -> Any:
        with torch.no_grad():
            return actor(torch.as_tensor(rows)).argmax(dim=1).numpy()

    curve: list[tuple[int, float]] = []

    def measure(decisions: int) -> None:
        turnaround = mean_turnaround(choose, args.spec, tasks=args.tasks)
        curve.append((decisions, turnaround))
        print(f"{decisions:>9,} decisions: mean turnaround {turnaround:.3f} s", flush=True)

    rule = mean_turnaround(earliest_finish, args.spec, tasks=args.tasks)
    print(f"earliest finish: mean turnaround {rule:.3f} s")
    measure(0)

    shape = (args.steps, args.envs)
    observations = torch.zeros(*shape, inputs)
    actions, ended = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape)
    log_probabilities, rewards, values = torch.zeros(shape), torch.zeros(shape), torch.zeros(shape)
    current = torch.as_tensor(envs.reset(seed=args.seed)[0])
    scale = 1.0
    rounds = max(args.decisions // (args.steps * args.envs), 1)
    for number in range(1, rounds + 1):
        # Decide a stretch of tasks in every environment.
        for step in range(args.steps):
            observations[step] = current
            with torch.no_grad():
                distribution = Categorical(logits=actor(current))
                action = distribution.sample()
                values[step] = critic(current).squeeze(1)
                log_probabilities[step] = distribution.log_prob(action)
            actions[step] = action
            next_rows, reward, _, truncated, info = envs.step(action.numpy())
            rewards[step] = torch.as_tensor(reward, dtype=torch.float32)
            if truncated.all():  # the stream goes on behind the episode: its value is estimated
                with torch.no_grad():
                    last = critic(torch.as_tensor(info["final_obs"])).squeeze(1)
                rewards[step] += args.gamma * last * scale
            ended[step] = torch.as_tensor(truncated, dtype=torch.float32)
            current = torch.as_tensor(next_rows)

        # Rewards in units of their deviation; then advantages, from the last task to the first.
        scale = 0.9 * scale + 0.1 * float(rewards.std()) if number > 1 else float(rewards.std())
        scaled = rewards / max(scale, 1e-6)
        advantages, following = torch.zeros(shape), torch.zeros(args.envs)
        with torch.no_grad():
            next_value = critic(current).squeeze(1)
        for step in reversed(range(args.steps)):
            goes_on = 1.0 - ended[step]
            delta = scaled[step] + args.gamma * next_value * goes_on - values[step]
            following = delta + args.gamma * args.gae_lambda * goes_on * following
            advantages[step], next_value = following, values[step]
        returns = advantages + values

        # Improve the policy on what was seen.
        update(args, optimiser, parameters, actor, critic, *(
            column.reshape(args.steps * args.envs, *column.shape[2:])
            for column in (observations, actions, log_probabilities, advantages, returns)
        ))  # fmt: skip
        if number % args.measure_every == 0 or number == rounds:
            measure(number * args.steps * args.envs)

    write_curve(curve, args.out.with_suffix(".csv"))
    export(actor, inputs, envs.time_scale, args.out)
    print(f"wrote {args.out}; put it into the arena with: hybrid up --add {args.out}")


def update(
    args: argparse.Namespace,
    optimiser: torch.optim.Optimizer,
    parameters: list[nn.Parameter],
    actor: nn.Module,
    critic: nn.Module,
    observations: Tensor,
    actions: Tensor,
    old_log_probabilities: Tensor,
    advantages: Tensor,
    returns: Tensor,
) -> None:
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for _ in range(args.epochs):
        for rows in torch.randperm(len(actions)).chunk(args.minibatches):
            distribution = Categorical(logits=actor(observations[rows]))
            ratio = (distribution.log_prob(actions[rows]) - old_log_probabilities[rows]).exp()
            clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
            gain = torch.min(ratio * advantages[rows], clipped * advantages[rows]).mean()
            error = (critic(observations[rows]).squeeze(1) - returns[rows]).square().mean()
            loss = args.value_weight * error - gain - args.entropy * distribution.entropy().mean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, args.gradient_norm)
            optimiser.step()


if __name__ == "__main__":
    main()
