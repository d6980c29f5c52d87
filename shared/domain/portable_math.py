"""exp, log, powers and normal quantiles with the same bits on every machine.

numpy's own round differently on different CPUs and with different versions. IEEE 754 defines every
bit of + - * / and sqrt, so these functions use nothing else. They are accurate to a few units in
the last place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# ln 2 in two parts: any exponent times the first one is exact.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
LOG2_E = 1.44269504088896338700e00

# exp(r) for |r| <= ln(2) / 2 is its Taylor series: the term after these is below 1e-17.
_EXP = tuple(1.0 / float(factorial) for factorial in np.cumprod([1, *range(1, 14)]))
# log((1 + s) / (1 - s)) / 2s as a series in s * s, for |s| <= 0.172.
_LOG = tuple(1.0 / (2 * n + 1) for n in range(11))

# Rational approximations of the normal quantile: Wichura's algorithm AS 241 (1988), PPND16.
_CENTRE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
     1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
     3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
     5.2264952788528545610e3),
)  # fmt: skip
_SHOULDER = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9),
)  # fmt: skip
_TAIL = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15),
)  # fmt: skip


def exp(x: Floats) -> Floats:
    """e to the power of x; NaN stays NaN."""
    x = np.clip(x, -800.0, 800.0)  # beyond these it is 0 or infinity
    twos = np.rint(np.nan_to_num(x) * LOG2_E)
    rest = (x - twos * LN2_HIGH) - twos * LN2_LOW
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(_polynomial(_EXP, rest), twos.astype(np.int32)))


def log(x: Floats) -> Floats:
    """The natural logarithm of numbers above 0."""
    fraction, twos = np.frexp(x)
    small = fraction < 0.7071067811865476
    fraction = np.where(small, fraction + fraction, fraction)
    twos = twos - small
    s = (fraction - 1.0) / (fraction + 1.0)
    return np.asarray(twos * LN2_HIGH + (twos * LN2_LOW + (s + s) * _polynomial(_LOG, s * s)))


def power(base: Floats, exponent: float) -> Floats:
    """Numbers above 0 to any power; 0.5, 1 and 1.5 by roots and products."""
    if exponent == 0.5:
        return np.asarray(np.sqrt(base))
    if exponent == 1.0:
        return base
    if exponent == 1.5:
        return np.asarray(base * np.sqrt(base))
    return exp(exponent * log(base))


def normal_quantile(u: Floats) -> Floats:
    """The number below which a standard normal variable lies with probability u, 0 < u < 1."""
    from_middle = u - 0.5
    z = from_middle * _ratio(_CENTRE, 0.180625 - from_middle * from_middle)
    far = np.flatnonzero(np.abs(from_middle) > 0.425)
    r = np.sqrt(-log(np.minimum(u[far], 1.0 - u[far])))
    size = np.where(r <= 5.0, _ratio(_SHOULDER, r - 1.6), _ratio(_TAIL, r - 5.0))
    z[far] = np.copysign(size, from_middle[far])
    return np.asarray(z)


def _polynomial(coefficients: tuple[float, ...], x: Floats) -> Floats:
    value = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value *= x
        value += coefficient
    return value


def _ratio(polynomials: tuple[tuple[float, ...], tuple[float, ...]], x: Floats) -> Floats:
    above, below = polynomials
    return _polynomial(above, x) / _polynomial(below, x)
