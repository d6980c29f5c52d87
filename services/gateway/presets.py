"""A workload preset in a sentence, made from its numbers."""

from __future__ import annotations

from shared.presets import PRESETS
from shared.spec import Bimodal, LogNormal, Mix, Pareto


def describe(name: str) -> str:
    """
    >>> describe("readme")
    'sizes 500 to 1500; intensity 0.1 to 0.9; memory 50 to 150 MB'
    """
    mix = Mix.model_validate(PRESETS[name])
    tied = ", more for larger tasks" if mix.memory.size_exponent else ""
    return (
        f"sizes {_values(mix.size)}; intensity {_values(mix.intensity)}; "
        f"memory {_values(mix.memory.values)} MB{tied}"
    )


def _values(given: object) -> str:
    if isinstance(given, LogNormal):
        return f"around {given.median:g} (log-normal, up to {given.high:g})"
    if isinstance(given, Pareto):
        return f"from {given.low:g} (Pareto, up to {given.high:g})"
    if isinstance(given, Bimodal):
        return f"around {given.low:g} or {given.high:g}"
    return f"{getattr(given, 'low', 0):g} to {getattr(given, 'high', 0):g}"
