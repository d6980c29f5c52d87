"""A workload preset in a sentence, made from its numbers."""

from __future__ import annotations

from shared.domain.spec_parts.workload_presets import ARRIVAL_RATES, PRESETS
from shared.domain.spec_parts.workload_spec import Bimodal, LogNormal, Mix, Pareto


def describe(name: str) -> str:
    """
    >>> describe("readme")
    'sizes 500 to 1500; intensity 0.1 to 0.9; memory 50 to 150 MB; 4 tasks/s'
    """
    mix = Mix.model_validate(PRESETS[name])
    larger = ", more for larger tasks" if mix.memory.size_exponent else ""
    return (
        f"sizes {_range(mix.size)}; intensity {_range(mix.intensity)}; "
        f"memory {_range(mix.memory.values)} MB{larger}; {ARRIVAL_RATES[name]:g} tasks/s"
    )


def _range(distribution: object) -> str:
    if isinstance(distribution, LogNormal):
        return f"around {distribution.median:g} (log-normal, up to {distribution.high:g})"
    if isinstance(distribution, Pareto):
        return f"from {distribution.low:g} (Pareto, up to {distribution.high:g})"
    if isinstance(distribution, Bimodal):
        return f"around {distribution.low:g} or {distribution.high:g}"
    return f"{getattr(distribution, 'low', 0):g} to {getattr(distribution, 'high', 0):g}"
