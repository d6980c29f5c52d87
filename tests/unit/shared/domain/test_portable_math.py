"""Elementary functions: right to a few units in the last place, and the same on every machine."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special

from shared.domain.physics import price
from shared.domain.portable_math import exp, log, normal_quantile, power
from shared.domain.spec import RunSpec
from shared.domain.workload import Cursor, generate

UNIT = 2.0**-52


def precisely(function: Callable[[Decimal], Decimal], x: float) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        return function(Decimal(x))


def error(found: float, exact: Decimal) -> float:
    """Relative to what is right."""
    return abs(float((Decimal(found) - exact) / exact)) if exact else abs(found)


@given(st.floats(-700, 700))
@example(0.0)
@example(0.34657359027997264)  # half of ln 2: the end of what the series is used for
@example(-0.3465735902799727)
def test_exp_is_right(x: float) -> None:
    assert error(float(exp(np.array([x]))[0]), precisely(Decimal.exp, x)) < 2 * UNIT


@given(st.floats(1e-300, 1e300))
@example(1.0)
@example(0.7071067811865475)
@example(0.7071067811865476)
@example(1 - 2.0**-53)
@example(1 + 2.0**-52)
def test_log_is_right(x: float) -> None:
    assert error(float(log(np.array([x]))[0]), precisely(Decimal.ln, x)) < 3 * UNIT


def test_exp_ends_in_0_and_in_infinity() -> None:
    assert exp(np.array([-1e9, -746.0, 710.0, 1e9])).tolist() == [0.0, 0.0, np.inf, np.inf]


def test_what_is_no_number_stays_so() -> None:
    nothing = np.array([np.nan])
    for found in (exp(nothing), log(nothing), power(nothing, 0.7)):
        assert np.isnan(found).all()


@given(st.floats(1e-6, 1e6), st.floats(-4, 4))
@example(2.0, 0.5)
@example(2.0, 1.5)
@example(7.0, 1.0)
@example(7.0, 0.0)
def test_powers_are_right(base: float, exponent: float) -> None:
    with localcontext() as context:
        context.prec = 60
        exact = Decimal(base) ** Decimal(exponent)
    # The logarithm's last place counts as often as the exponent says.
    assert error(float(power(np.array([base]), exponent)[0]), exact) < 64 * UNIT


def test_normal_quantiles_are_right_from_one_tail_to_the_other() -> None:
    u = np.concatenate([np.linspace(1e-6, 1 - 1e-6, 9999), 2.0 ** -np.arange(1, 55)])
    found, other = normal_quantile(u), special.ndtri(u)
    assert found == pytest.approx(other, rel=2e-14, abs=2e-15)
    assert (np.diff(found[:9999]) > 0).all()


# Exponents and distributions that need every function there is.
SPEC = RunSpec.parse(
    {
        "seed": 3,
        "physics": {"size_exponent": 1.7},
        "workload": {
            "preset": "hpc",
            "arrival_rate": 4,
            "mix": {"size": {"kind": "pareto", "low": 40, "alpha": 1.3, "high": 5000}},
            "dependencies": {"probability": 0.2},
        },
    }
)


def fingerprint(spec: RunSpec) -> str:
    """A hash of 20,000 tasks and of what half of each on a GPU costs."""
    tasks, _ = generate(spec, Cursor(), 20_000)
    priced = price(tasks, np.full(len(tasks), 0.5), spec)
    columns = (tasks.size, tasks.compute_intensity, tasks.memory_required, tasks.arrival_time)
    digest = hashlib.sha256()
    for column in (*columns, priced.time, priced.energy, priced.cost):
        digest.update(np.ascontiguousarray(column, "<f8").tobytes())
    return digest.hexdigest()[:16]


# What these seeds mean. It changes for nobody: not on another machine, not with the next release.
MEANT = {"a plain run": "613da3c3a2b80e06", "everything": "55195f6fbebb31c7"}


PLAIN = RunSpec.parse({"seed": 1, "workload": {"arrival_rate": 4}})


@pytest.mark.parametrize(("name", "spec"), [("a plain run", PLAIN), ("everything", SPEC)])
def test_a_seed_means_the_same_tasks_and_prices_for_ever(name: str, spec: RunSpec) -> None:
    assert fingerprint(spec) == MEANT[name]


def plain_machine() -> dict[str, str]:
    """The environment in which numpy and glibc use no vector instructions of this machine."""
    used = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])  # type: ignore[index]
    without = ",".join(f"-{name}" for name in ("AVX", "AVX2", "FMA", "FMA4", "AVX512F"))
    return {
        "NPY_DISABLE_CPU_FEATURES": " ".join(used),
        "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={without}",
    }


def test_a_cpu_without_vector_instructions_gives_the_same_bits() -> None:
    code = "from tests.unit.shared.domain.test_portable_math import *; print(fingerprint(SPEC))"
    asked = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **plain_machine()},
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout.strip() == fingerprint(SPEC)
