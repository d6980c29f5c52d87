"""Measuring: the real CPU of this machine, and a fake GPU."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli.main import app
from services.lab.profiling.gpu import TorchDevice, Work
from services.lab.profiling.hardware_profile import Timing, load
from services.lab.profiling.measure import Effort, measure, timed

SMALL = Effort(seconds=0.5, edges=(128, 512), blocks_mb=(1, 4), array_mb=8, caches=0)


class StandIn:
    """Two devices whose every call takes a known time."""

    backend, name, count, memory_mb = "stand-in", "Stand-in", 2, 16000.0
    details: dict[str, str]

    def __init__(self) -> None:
        self.details = {"driver": "none"}

    def product(self, edge: int) -> Work:
        return lambda: time.sleep(0.001)

    def to_device(self, mb: float) -> Work:
        return lambda: time.sleep(0.002 * mb)

    def to_host(self, mb: float) -> Work:
        return lambda: time.sleep(0.001)


def plausible(timing: Timing) -> bool:
    return timing.median_s > 0 and math.isfinite(timing.spread) and timing.repetitions >= 3


def test_this_machine_is_measured() -> None:
    reported: list[float] = []
    outcome = measure(SMALL, lambda what, share: reported.append(share), find=lambda: None)
    assert [product.edge for product in outcome.cpu.products] == [128, 512]
    assert all(map(plausible, (*outcome.cpu.products, outcome.cpu.copy_, outcome.cpu.add)))
    assert outcome.gpu is None
    assert outcome.machine.cores >= 1
    assert outcome.machine.threads >= 1
    assert outcome.machine.blas != "unknown"
    assert reported == sorted(reported)
    assert (reported[0], reported[-1]) == (0, 1)
    assert outcome.calibration[0].measured


def test_copying_counts_what_is_read_and_what_is_written() -> None:
    outcome = measure(SMALL, find=lambda: None)
    assert outcome.cpu.copy_.mb == pytest.approx(16)
    assert outcome.cpu.add.mb == pytest.approx(24)


def test_a_device_is_measured_by_size_and_by_block() -> None:
    outcome = measure(SMALL, find=StandIn)
    gpu = outcome.gpu
    assert gpu is not None
    assert (gpu.backend, gpu.name, gpu.count, gpu.memory_mb) == ("stand-in", "Stand-in", 2, 16000)
    assert [product.edge for product in gpu.products] == [128, 512]
    assert [transfer.mb for transfer in gpu.to_device] == [1, 4]
    assert [transfer.mb for transfer in gpu.to_host] == [1, 4]
    # A sleep takes at least what was asked: 1 ms, and 8 ms for the largest block.
    assert min(product.median_s for product in gpu.products) >= 0.001
    assert gpu.to_device[1].mb_s <= 500
    measured = {constant.field: constant.value for constant in outcome.calibration}
    assert measured["physics.bandwidth_mb_s"] == pytest.approx(gpu.to_device[1].mb_s, rel=1e-3)
    assert measured["cluster.gpus"] == 2


def test_a_failing_device_is_reported_and_the_rest_is_kept() -> None:
    class Broken(StandIn):
        def product(self, edge: int) -> Work:
            raise RuntimeError("CUDA out of memory.\nTried to allocate 64 MB")

    outcome = measure(SMALL, find=Broken)
    assert outcome.gpu is None
    assert len(outcome.cpu.products) == 2
    assert "a GPU was found but could not be measured: CUDA out of memory." in outcome.warnings


def test_what_torch_is_told_works_on_the_device_that_every_torch_has() -> None:
    gpu = measure(SMALL, find=lambda: TorchDevice("cpu")).gpu
    assert gpu is not None
    assert all(map(plausible, (*gpu.products, *gpu.to_device, *gpu.to_host)))
    assert gpu.details["host_memory"] == "pageable"
    assert gpu.memory_mb > 0


def test_short_work_is_repeated_within_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def work() -> None:
        nonlocal calls
        calls += 1

    # Each call takes a microsecond of this clock, however busy the machine is.
    monkeypatch.setattr("services.lab.profiling.measure.time.perf_counter", lambda: calls * 1e-6)
    outcome = timed(work, 0.5)
    assert outcome.median_s == pytest.approx(1e-6)
    assert calls > 100 * outcome.repetitions


def test_long_work_is_repeated_three_times_whatever_the_budget() -> None:
    outcome = timed(lambda: time.sleep(0.006), 0)
    assert outcome.repetitions == 3
    assert outcome.median_s >= 0.006


def test_the_command_writes_a_profile_and_lists_assumptions(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    arguments = ["profile", "--quick", "--seconds", "0.5", "--out", str(file)]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert "CPU, product of edge 512" in first.stdout
    assert "no GPU was measured: its speed-up, memory and transfer stay assumed" in first.stderr
    assert f"wrote {file}" in first.stderr
    assert list(tmp_path.iterdir()) == [file]
    load(file)

    again = CliRunner().invoke(app, [*arguments, "--json"])
    assert f"overwrote {file}" in again.stderr
    assert json.loads(again.stdout) == json.loads(file.read_text())


def test_a_file_that_cannot_be_written_is_reported_before_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured_anyway(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("services.lab.profiling.measure.measure", measured_anyway)
    for place, message in ((tmp_path, "is a folder"), (tmp_path / "no" / "it.json", "cannot be")):
        result = CliRunner().invoke(app, ["profile", "--out", str(place)])
        assert result.exit_code == 1
        assert message in result.stderr


def test_other_commands_do_not_load_torch_or_the_profiler() -> None:
    script = (
        "import sys, services.cli.main; "
        "print([m for m in ('torch', 'services.lab.profiling.measure') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
