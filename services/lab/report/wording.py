"""Numbers as people read them: few digits, units, intervals, names in a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from services.lab.statistics import Estimate


def number(value: float | None, digits: int = 3) -> str:
    """Significant digits without an exponent where a person would write none."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size >= 6 or size < -4:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value:,.{max(digits - 1 - size, 0)}f}"


def quantity(value: Estimate | None, unit: str = "") -> str:
    """`18.3 s [17.9, 18.8]`: the mean and its 95 % interval, where there is one."""
    if value is None:
        return "–"
    return _mean(value) + (f" {unit}" if unit else "") + interval(value)


def interval(value: Estimate) -> str:
    if value.low is None or value.high is None:
        return ""
    digits = _digits(value)
    return f" [{number(value.low, digits)}, {number(value.high, digits)}]"


def _mean(value: Estimate) -> str:
    return number(value.mean, _digits(value))


def _digits(value: Estimate) -> int:
    """Three, or as many more as show that a narrow interval has a width."""
    if value.low is None or value.high is None:
        return 3
    ends = (value.low, value.high)
    return next((n for n in (3, 4, 5) if len({number(end, n) for end in ends}) == 2), 3)


def plus_minus(value: Estimate | None) -> str:
    """`18.3 ± 0.4` for a table."""
    if value is None:
        return "–"
    if value.high is None:
        return number(value.mean)
    half = value.high - value.mean
    if half == 0:
        return f"{number(value.mean)} ± 0"
    size = math.floor(math.log10(max(abs(value.mean), 1e-300)))
    if abs(size) >= 6:
        return f"{number(value.mean)} ± {number(half, 2)}"
    places = max(2 - size, 0)
    shown = f"{half:,.{places}f}"
    return f"{number(value.mean)} ± {shown if float(shown.replace(',', '')) else number(half, 1)}"


def signed(value: Estimate) -> str:
    """`+0.12 [+0.10, +0.14]`: a change."""
    text = f"{value.mean:+.2f}"
    if value.low is None or value.high is None:
        return text
    return f"{text} [{value.low:+.2f}, {value.high:+.2f}]"


def times(value: Estimate | None) -> str:
    return "–" if value is None else f"{_mean(value)} times{interval(value)}"


def multiple(value: Estimate | None) -> str:
    """`1.42 ×` for a table."""
    return "–" if value is None else f"{number(value.mean)} ×"


def chance(p: float | None) -> str:
    if p is None:
        return "–"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
