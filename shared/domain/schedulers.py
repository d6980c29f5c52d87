"""The built-in schedulers, by name.

A policy is found by its name in `services/scheduler/policies/`; a plug-in needs no entry here.
"""

from __future__ import annotations

import re

SCHEDULER_NAME = r"^[a-z][a-z0-9_]{0,31}$"

ORACLE = "oracle"
CLAIRVOYANT = "clairvoyant"
FOREST = "hybrid_ml"
AGENT = "rl_agent"
PREDICTIVE = "predictive"
ATTENTION = "attention_agent"
BANDIT = "bandit"

BUILT_IN = (
    "round_robin",
    "random",
    "greedy",
    FOREST,
    AGENT,
    ORACLE,
    "cpu_only",
    "gpu_only",
    "least_loaded",
    "eft",
    "heft",
    PREDICTIVE,
    ATTENTION,
    BANDIT,
    CLAIRVOYANT,
)

# They know real times that nobody can know: shown for comparison, not as competitors.
REFERENCES = (ORACLE, CLAIRVOYANT)

# Those that decide with a model; its learner is found by this name in `services/trainer/learners/`.
LEARNERS = (FOREST, AGENT, PREDICTIVE, ATTENTION, BANDIT)


def check_scheduler_name(name: str) -> str:
    if not re.fullmatch(SCHEDULER_NAME, name):
        raise ValueError(
            f"{name!r} is no scheduler name: lower-case letters, digits and _, "
            "a letter first, at most 32"
        )
    return name
