"""Results of real runs as further measurements of a platform."""

from __future__ import annotations

import statistics
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


def test_results_count_like_measurements_of_the_nearest_size(
    platform: PlatformFile, tmp_path: Path
) -> None:
    # The curve is proportional to the size: ratios 2 and 3 at the first size, none at the second.
    results = [RealResult("sort", "blas", 1, 2), RealResult("sort", "blas", 4, 12)]
    imported, changed = refined(platform, results)
    imported.write(tmp_path / "mine.yaml")
    on_blas, on_cpu = load(tmp_path / "mine.yaml").times
    # Four measurements with mean 1 and deviation 0.5 are, for instance, these.
    all_six = [0.5, 0.5, 1.5, 1.5, 2, 3]
    assert list(on_blas.seconds) == pytest.approx([statistics.mean(all_six), 100])
    relative = statistics.pstdev(all_six) / statistics.mean(all_six)
    assert list(on_blas.deviations) == pytest.approx([relative, 0.1], rel=1e-3)
    assert on_blas.counts == (6, 8)
    assert on_cpu == platform.times[1]
    assert changed == [{"kind": "sort", "type": "blas", "results": 2, "ratio": 2.5}]


def test_results_of_another_platform_are_refused(platform: PlatformFile) -> None:
    with pytest.raises(SpecError, match="no times of fft on blas"):
        refined(platform, [RealResult("fft", "blas", 1, 2)])
