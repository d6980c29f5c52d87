"""A measured platform: what is measured on the devices, and the curves that follow from it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from services.lab.calibration.devices import DeviceKind, devices_of, devices_of_this_machine
from services.lab.calibration.measure import CalibrationError, Effort, Sample, measure
from services.lab.calibration.measured_platform import measured_platform, warnings
from shared.domain.spec import RunSpec
from shared.errors import SpecError
from shared.execution.settings import DeviceSetting, settings_of
from shared.platforms.platform_file import load, shipped

CORE = min(os.sched_getaffinity(0))
BLAS = {"cores": [CORE], "library": "blas", "copy": True}
PLAIN = {"cores": [CORE], "library": "plain"}


def kind(type_: str, real: Mapping[str, Any]) -> DeviceKind:
    return DeviceKind({"type": type_, "real": real}, tuple(settings_of(real)))


def sample(type_: str, size: float, seconds: float, transfer_s: float = 0.0) -> Sample:
    return Sample(type_, "sort", size, size * 100, seconds, transfer_s, 0.001, None)


def test_means_deviations_and_counts_are_those_of_the_samples(tmp_path: Path) -> None:
    samples = [
        sample("blas", 2, 0.01, 0.1),
        sample("blas", 2, 0.03, 0.3),
        sample("blas", 4, 0.05, 0.4),
        sample("blas", 4, 0.05, 0.4),
        *(sample("cpu", size, seconds) for size in (2, 4) for seconds in (0.1, 0.2, 0.3)),
    ]
    devices = [kind("blas", BLAS), kind("cpu", PLAIN)]
    made = measured_platform(devices, samples, Effort(memory_mb_per_size=100), "mine")
    written = made.write(tmp_path / "mine.yaml")
    on_blas, on_cpu = written.times
    assert on_blas.seconds == (0.02, 0.05)
    # Deviation of 0.01 and 0.03 over their mean: sqrt(2 * 0.01**2) / 0.02.
    assert on_blas.deviations == (0.7071, 0)
    assert on_blas.counts == (2, 2)
    assert on_cpu.seconds == (0.2, 0.2)
    assert on_cpu.deviations == (0.5, 0.5)
    # 200 + 200 + 400 + 400 MB in 1.2 s.
    assert written.cluster.devices[0].bandwidth_mb_s == 1000
    assert written.cluster.devices[1].bandwidth_mb_s is None
    assert list(warnings(written.times)) == [
        "repetitions differ, the machine was busy: sort on blas ±35%, sort on cpu ±50%"
    ]


def test_the_file_serves_simulated_runs_and_names_the_real_devices(tmp_path: Path) -> None:
    samples = [
        sample(type_, size, size, transfer_s=0.5)
        for type_ in ("blas", "cpu")
        for size in (1, 1, 2, 2)
    ]
    devices = [kind("blas", BLAS), kind("cpu", PLAIN)]
    path = tmp_path / "mine.yaml"
    measured_platform(devices, samples, Effort(), "mine").write(path)
    platform = load(path)
    spec = RunSpec.parse(platform.spec_fields())
    assert spec.physics.noise == "measured"
    assert [each.name for each in spec.platform.types] == ["blas", "cpu"]
    again = devices_of(platform)
    assert [each.settings for each in again] == [
        (DeviceSetting(cores=(CORE,), library="blas", copy=True),),
        (DeviceSetting(cores=(CORE,), library="plain"),),
    ]


async def test_every_kind_and_size_is_measured_on_every_device() -> None:
    effort = Effort(0.1, kinds=("matmul", "sort"), sizes=2, shortest_s=0.001, longest_s=0.02)
    samples = await measure([kind("blas", BLAS), kind("cpu", PLAIN)], effort)
    counts = Counter((each.type, each.kind, each.size) for each in samples)
    assert min(counts.values()) >= 3
    sizes = {kind: {size for _, of, size in counts if of == kind} for kind in effort.kinds}
    assert [len(sizes[kind]) for kind in effort.kinds] == [2, 2]
    assert len(counts) == 8
    for each in samples:
        assert each.seconds > each.dispatch_s > 0
        assert each.memory_mb == pytest.approx(0.2 * each.size)
        assert (each.transfer_s > 0) == (each.type == "blas")


async def test_a_device_that_cannot_start_is_named() -> None:
    with pytest.raises(CalibrationError, match="device fast: the device cannot start"):
        await measure([kind("fast", {"cores": [CORE], "library": "torch:nonsense"})], Effort())


def test_a_platform_without_real_devices_cannot_be_measured() -> None:
    with pytest.raises(SpecError, match="no `real` block of"):
        devices_of(shipped()["workstation"])


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_without_a_gpu_two_cores_are_unequal_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.lab.calibration.devices.find_device", lambda: None)
    blas, cpu = devices_of_this_machine()
    assert (blas.type, cpu.type) == ("blas", "cpu")
    assert blas.settings[0].copy
    assert not cpu.settings[0].copy
    assert set(blas.settings[0].cores).isdisjoint(cpu.settings[0].cores)
