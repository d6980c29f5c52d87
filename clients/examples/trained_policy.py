"""What both examples do with a trained network: measure it on fresh runs, and export it."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import hybrid_gym
from hybrid_gym.onnx_file import store_time_scale

# Runs that no training draws (its seeds are drawn from 2**31 numbers).
FIRST_SEED = 2**40


def mean_turnaround(
    choose: Callable[[Any], Any], spec: Any = None, runs: int = 8, tasks: int = 1000
) -> float:
    """In seconds, for a policy that chooses a device for each row of observations."""
    envs = hybrid_gym.SchedulingVectorEnv(runs, spec, tasks=tasks, runs=runs)
    observations, _ = envs.reset(seed=FIRST_SEED)
    total = 0.0
    for _ in range(tasks):
        observations, _, _, _, info = envs.step(np.asarray(choose(observations)))
        total += float(info["turnaround"].mean())
    return total / tasks


def earliest_finish(observations: Any) -> Any:
    """The rule to compare with: the last feature of a device is 1 where the task ends first."""
    task = observations.shape[1] % 12
    devices = observations[:, task:].reshape(len(observations), -1, 12)
    return devices[..., -1].argmax(axis=1)


def export(network: nn.Module, inputs: int, time_scale: float, path: Path) -> None:
    """Export for `hybrid up --add FILE`: observations in, a score for each device out."""
    with warnings.catch_warnings():  # the newer exporter needs one more package, and no warning
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.eval(),
            (torch.zeros(1, inputs),),
            path,
            input_names=["observation"],
            output_names=["scores"],
            dynamic_axes={"observation": {0: "rows"}, "scores": {0: "rows"}},
            dynamo=False,
        )
    store_time_scale(path, time_scale)


def write_curve(points: Iterable[tuple[int, float]], path: Path) -> None:
    """Write the decisions so far with the mean turnaround on fresh runs."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("decisions", "mean_turnaround"), *points])
