"""The built-in schedulers, by name.

A policy is found by its name in `services/scheduler/policies/`; a plug-in needs no entry here.
"""

from __future__ import annotations

ORACLE = "oracle"
CLAIRVOYANT = "clairvoyant"
FOREST = "hybrid_ml"
AGENT = "rl_agent"

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
    CLAIRVOYANT,
)

# They know real times that nobody can know: shown for comparison, not as competitors.
REFERENCES = (ORACLE, CLAIRVOYANT)

LEARNERS = (FOREST, AGENT)

# The scheduler whose results each learner learns from.
TEACHERS = {FOREST: ORACLE, AGENT: AGENT}
