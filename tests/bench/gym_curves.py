"""`make bench-gym-curves`: learning curves of both example trainings, over seeds; one JSON object.

Mean turnaround on eight fresh runs of 1,000 tasks after so many decisions of training, over that of
earliest finish on the same runs. With --write also draws docs/gym-curves.png.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy import stats

from tests.bench import report

mpl.use("agg")
from matplotlib import pyplot as plt

EXAMPLES = {
    "Stable-Baselines3": Path("clients/examples/train_sb3.py"),
    "one file": Path("clients/examples/train_ppo.py"),
}
PICTURE = Path("docs/gym-curves.png")
SHOWN = 8  # rows of the table


def main() -> None:
    parser = report.parser("bench-gym-curves", __doc__ or "")
    parser.add_argument("--decisions", type=int, default=500_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--spec", help="a run spec, YAML or JSON; the default workload without it")
    given = parser.parse_args()
    options = ["--decisions", str(given.decisions)]
    options += ["--spec", given.spec] if given.spec else []
    jobs = [(name, seed) for seed in range(1, given.seeds + 1) for name in EXAMPLES]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        trained = list(pool.map(lambda job: train(*job, options), jobs))
    rule = trained[0]["earliest_finish_s"]
    curves = {
        name: curve([t for t, (other, _) in zip(trained, jobs, strict=True) if other == name])
        for name in EXAMPLES
    }
    found = {"seeds": given.seeds, "earliest_finish_s": rule, "curves": curves}
    report.publish("bench-gym-curves", found, table(curves), write=given.write)
    if given.write:
        draw(curves, given.seeds)


def train(name: str, seed: int, options: list[str]) -> dict[str, Any]:
    report.progress(f"{name}, seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        network = Path(folder, "trained.onnx")
        command = [sys.executable, EXAMPLES[name], "--seed", str(seed), "--out", network]
        printed = subprocess.run(
            [*command, *options], check=True, capture_output=True, text=True
        ).stdout
        with network.with_suffix(".csv").open() as file:
            points = [(int(row[0]), float(row[1])) for row in list(csv.reader(file))[1:]]
    rule = re.search(r"earliest finish: mean turnaround ([\d.]+)", printed)
    assert rule is not None, printed
    return {"earliest_finish_s": float(rule[1]), "points": points}


def curve(trained: list[dict[str, Any]]) -> list[dict[str, float]]:
    """Geometric mean over the seeds, with its 95 % t interval."""
    decisions = [at for at, _ in trained[0]["points"]]
    logs = np.log(
        [[value / each["earliest_finish_s"] for _, value in each["points"]] for each in trained]
    )
    mean = logs.mean(axis=0)
    half = np.zeros_like(mean)
    if len(trained) > 1:
        error = logs.std(axis=0, ddof=1) / np.sqrt(len(trained))
        half = stats.t.ppf(0.975, len(trained) - 1) * error
    columns = zip(decisions, np.exp(mean), np.exp(mean - half), np.exp(mean + half), strict=True)
    return [
        {"decisions": at, "ratio": float(ratio), "low": float(low), "high": float(high)}
        for at, ratio, low, high in columns
    ]


def table(curves: dict[str, list[dict[str, float]]]) -> report.Table:
    first = next(iter(curves.values()))
    shown = sorted({round(at) for at in np.linspace(0, len(first) - 1, SHOWN)})
    head = ("decisions, about", *curves)
    rows = [
        (about(first[at]["decisions"]), *(_ratio(points[at]) for points in curves.values()))
        for at in shown
    ]
    return [head, *rows]


def about(decisions: float) -> str:
    """The rounds of the two differ a little."""
    return f"{round(decisions, -4):,}"


def _ratio(point: dict[str, float]) -> str:
    return "{ratio:.3f} [{low:.3f}, {high:.3f}]".format_map(point)


def draw(curves: dict[str, list[dict[str, float]]], seeds: int) -> None:
    figure, (whole, end) = plt.subplots(ncols=2, figsize=(7.1, 2.8), layout="constrained")
    for axes in (whole, end):
        for name, points in curves.items():
            at = [point["decisions"] / 1000 for point in points]
            axes.plot(at, [point["ratio"] for point in points], marker=".", label=name)
            low, high = ([point[bound] for point in points] for bound in ("low", "high"))
            axes.fill_between(at, low, high, alpha=0.2)
        axes.axhline(1, color="black", linewidth=0.8, linestyle="--", label="earliest finish")
        axes.set_xlabel("thousand decisions of training")
    whole.set(yscale="log", ylabel="mean turnaround over\nthat of earliest finish")
    end.set(ylim=(0.96, 1.06), title="the same, magnified")
    whole.set_title(f"fresh runs, {seeds} seeds, 95 % intervals")
    whole.legend(frameon=False)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
