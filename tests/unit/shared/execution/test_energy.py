"""Energy counters, from files like those of the powercap driver."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shared.execution.energy import meter_of
from shared.execution.settings import DeviceSetting


def counter(folder: Path, name: str, microjoules: int) -> None:
    zone = folder / name
    zone.mkdir(exist_ok=True)
    (zone / "energy_uj").write_text(f"{microjoules}\n")
    (zone / "max_energy_range_uj").write_text("1000000000\n")


def test_a_device_counts_for_its_part_of_the_cores(tmp_path: Path) -> None:
    counter(tmp_path, "intel-rapl:0", 5_000_000)
    counter(tmp_path, "intel-rapl:0:0", 123)  # the cores alone: a part of the package
    meter = meter_of(DeviceSetting(cores=(0,)), tmp_path)
    meter.begin()
    counter(tmp_path, "intel-rapl:0", 25_000_000)
    assert meter.end() == pytest.approx(20 / (os.cpu_count() or 1))


def test_a_counter_that_starts_again_is_noticed(tmp_path: Path) -> None:
    counter(tmp_path, "intel-rapl:0", 999_000_000)
    meter = meter_of(DeviceSetting(cores=(0,)), tmp_path)
    meter.begin()
    counter(tmp_path, "intel-rapl:0", 2_000_000)
    assert meter.end() == pytest.approx(3 / (os.cpu_count() or 1))


def test_without_counters_energy_is_unknown(tmp_path: Path) -> None:
    for library in ("blas", "torch:cpu"):
        meter = meter_of(DeviceSetting(library=library), tmp_path)
        meter.begin()
        assert meter.end() is None
