"""Numbers as text: few digits, units, intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable

from services.lab.experiments.tables import RECOVERY_RATIO
from services.lab.reports.statistics import Estimate
from shared.domain.schedulers import REFERENCES

# What is left of a difference between equal sums of seconds, joules or dollars.
ROUNDING_ERROR = 1e-12

NEAR_ORACLE = f"within {100 * (RECOVERY_RATIO - 1):.0f} % of the Oracle"


def number(value: float | None, digits: int = 3) -> str:
    """Significant digits; an exponent only for very large and very small values."""
    if value is None or not math.isfinite(value):
        return "–"
    if abs(value) < ROUNDING_ERROR:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size >= 6 or size < -4:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value:,.{max(digits - 1 - size, 0)}f}"


def with_interval(value: Estimate | None, unit: str = "") -> str:
    """`18.3 s [17.9, 18.8]`: the mean and its 95 % interval, where there is one."""
    if value is None:
        return "–"
    ends = [end for end in (value.low, value.high) if end is not None]
    # Up to five digits when the ends of a narrow interval would look the same.
    digits = next((n for n in (3, 4, 5) if len({number(end, n) for end in ends}) == 2), 3)
    text = f"{number(value.mean, digits)} {unit}".rstrip()
    return f"{text} [{', '.join(number(end, digits) for end in ends)}]" if ends else text


def plus_minus(value: Estimate | None, unit: str = "") -> str:
    """`18.3 ± 0.42` for a table."""
    if value is None:
        return "–"
    text = number(value.mean)
    if value.high is not None:
        half = value.high - value.mean
        text += f" ± {number(half, 2 if half > abs(value.mean) / 50 else 1)}"
    return f"{text} {unit}".rstrip()


def p_value(p: float | None) -> str:
    if p is None:
        return "–"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def listed(names: Iterable[object]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    texts = [str(name) for name in names]
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def labelled(scheduler: str) -> str:
    """A scheduler's name in tables and figures."""
    return f"{scheduler} (reference)" if scheduler in REFERENCES else scheduler


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
