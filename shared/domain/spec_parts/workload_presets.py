"""The workload presets, by name.

A preset is a mix of distributions, and the arrival rate of a run that gives none. Drift and
dependencies are the spec's own.
`hpc` is tuned to be a contest: the GPU wins about half of the tasks. With memory of at most
500 MB (`documented`, `readme`) the transfer is so cheap that the GPU wins nearly always.
"""

from typing import Any

DEFAULT_PRESET = "hpc"

# Tasks per second of simulated time: about four tenths of what the default node can do. Queues then
# decide who is best, and the best task policies still keep up.
ARRIVAL_RATES: dict[str, float] = {
    DEFAULT_PRESET: 12,
    "documented": 0.7,
    "readme": 4,
    "gpu_friendly": 32,
    "cpu_friendly": 20,
}

PRESETS: dict[str, dict[str, Any]] = {
    DEFAULT_PRESET: {
        "size": {"kind": "lognormal", "median": 200, "sigma": 0.8, "high": 20_000},
        "intensity": {"kind": "bimodal", "low": 0.2, "high": 0.8, "spread": 0.08},
        "memory": {
            "values": {"kind": "lognormal", "median": 800, "sigma": 1.3, "high": 64_000},
            "size_reference": 200,
            "size_exponent": 0.5,
        },
    },
    "documented": {
        "size": {"kind": "uniform", "low": 100, "high": 5000},
        "intensity": {"kind": "uniform", "low": 0, "high": 1},
        "memory": {"values": {"kind": "uniform", "low": 10, "high": 500}},
    },
    "readme": {
        "size": {"kind": "uniform", "low": 500, "high": 1500},
        "intensity": {"kind": "uniform", "low": 0.1, "high": 0.9},
        "memory": {"values": {"kind": "uniform", "low": 50, "high": 150}},
    },
    "gpu_friendly": {
        "size": {"kind": "pareto", "low": 200, "alpha": 2.5, "high": 20_000},
        "intensity": {"kind": "uniform", "low": 0.7, "high": 1},
        "memory": {"values": {"kind": "uniform", "low": 10, "high": 200}},
    },
    "cpu_friendly": {
        "size": {"kind": "uniform", "low": 40, "high": 80},
        "intensity": {"kind": "uniform", "low": 0, "high": 0.1},
        "memory": {"values": {"kind": "uniform", "low": 3000, "high": 7000}},
    },
}
