"""Results of real runs refine a measured platform."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.lab.calibration.refine import RealResult, refined
from shared.errors import SpecError
from shared.platforms.platform_file import PlatformFile, load, parse

PLATFORM = """
name: mine
cluster: {devices: [{type: blas, accelerator: true}, {type: cpu}]}
times:
  - {kind: sort, type: blas, sizes: [1, 100], seconds: [1, 100], deviations: [0.5, 0.1],
     counts: [4, 8]}
  - {kind: sort, type: cpu, sizes: [1], seconds: [7]}
"""


@pytest.fixture
def platform() -> PlatformFile:
    return parse(PLATFORM, "mine.yaml", Path())


def test_results_give_a_curve_its_level_and_its_spread(
    platform: PlatformFile, tmp_path: Path
) -> None:
    # The curve is proportional to the size: all results take twice or four times as long.
    results = [RealResult("sort", "blas", 1 + n, (2 + n % 2 * 2) * (1 + n)) for n in range(90)]
    imported, changed = refined(platform, results)
    imported.write(tmp_path / "mine.yaml")
    on_blas, on_cpu = load(tmp_path / "mine.yaml").times
    assert list(on_blas.seconds) == pytest.approx([3, 300])
    # Ratios 2/3 and 4/3 of the mean.
    assert list(on_blas.deviations) == pytest.approx([1 / 3, 1 / 3], rel=1e-3)
    assert on_blas.counts == (94, 98)
    assert on_cpu == platform.times[1]
    assert changed == [{"kind": "sort", "type": "blas", "results": 90, "ratio": 3}]


def test_a_curve_with_few_results_is_drawn_towards_the_others_of_its_device() -> None:
    other = "  - {kind: fft, type: blas, sizes: [1], seconds: [1]}\n"
    platform = parse(PLATFORM + other, "mine.yaml", Path())
    # Ninety-nine results are as expected, and one takes twelve times as long.
    results = [RealResult("sort", "blas", 1, 1)] * 99 + [RealResult("fft", "blas", 1, 12)]
    imported, _ = refined(platform, results)
    level = {curve.kind: curve.seconds[0] for curve in imported.curves if curve.type == "blas"}
    mean = (99 + 12) / 100
    assert level["fft"] == pytest.approx((10 * mean + 12) / 11, rel=1e-3)
    assert level["sort"] == pytest.approx((10 * mean + 99) / 109, rel=1e-3)


def test_the_time_to_decide_is_that_of_tasks_that_found_an_idle_device(
    platform: PlatformFile, tmp_path: Path
) -> None:
    results = [
        RealResult("sort", "blas", 1, 1, delay=0.006),
        RealResult("sort", "blas", 1, 1, delay=0.01),
        RealResult("sort", "blas", 1, 1),
    ]
    imported, _ = refined(platform, results)
    imported.write(tmp_path / "mine.yaml")
    assert load(tmp_path / "mine.yaml").physics.decision_s == pytest.approx(0.008)


def test_results_of_another_platform_are_refused(platform: PlatformFile) -> None:
    with pytest.raises(SpecError, match="no times of fft on blas"):
        refined(platform, [RealResult("fft", "blas", 1, 2)])
