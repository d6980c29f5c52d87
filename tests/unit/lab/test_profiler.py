"""Measuring: this machine's CPU for real, and a GPU that is a stand-in, as none is here."""

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
from services.lab.accelerator import TorchDevice, Work
from services.lab.profile import Timing, load
from services.lab.profiler import Effort, measure, timed

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
    told: list[float] = []
    found = measure(SMALL, lambda what, share: told.append(share), find=lambda: None)
    assert [product.edge for product in found.cpu.products] == [128, 512]
    assert all(map(plausible, (*found.cpu.products, found.cpu.copy_, found.cpu.add)))
    assert found.gpu is None
    assert found.machine.cores >= 1
    assert found.machine.threads >= 1
    assert found.machine.blas != "unknown"
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0, 1)
    assert found.calibration[0].measured


def test_copying_counts_what_is_read_and_what_is_written() -> None:
    found = measure(SMALL, find=lambda: None)
    assert found.cpu.copy_.mb == pytest.approx(16)
    assert found.cpu.add.mb == pytest.approx(24)


def test_a_device_is_measured_by_size_and_by_block() -> None:
    found = measure(SMALL, find=StandIn)
    gpu = found.gpu
    assert gpu is not None
    assert (gpu.backend, gpu.name, gpu.count, gpu.memory_mb) == ("stand-in", "Stand-in", 2, 16000)
    assert [product.edge for product in gpu.products] == [128, 512]
    assert [transfer.mb for transfer in gpu.to_device] == [1, 4]
    assert [transfer.mb for transfer in gpu.to_host] == [1, 4]
    # A sleep takes at least what was asked: 1 ms, and 8 ms for the largest block.
    assert min(product.median_s for product in gpu.products) >= 0.001
    assert gpu.to_device[1].mb_s <= 500
    measured = {constant.field: constant.value for constant in found.calibration}
    assert measured["physics.bandwidth_mb_s"] == pytest.approx(gpu.to_device[1].mb_s, rel=1e-3)
    assert measured["cluster.gpus"] == 2


def test_a_device_that_fails_is_told_and_the_rest_is_kept() -> None:
    class Broken(StandIn):
        def product(self, edge: int) -> Work:
            raise RuntimeError("CUDA out of memory.\nTried to allocate 64 MB")

    found = measure(SMALL, find=Broken)
    assert found.gpu is None
    assert len(found.cpu.products) == 2
    assert "a GPU was found but could not be measured: CUDA out of memory." in found.warnings


def test_what_torch_is_told_works_on_the_device_that_every_torch_has() -> None:
    gpu = measure(SMALL, find=lambda: TorchDevice("cpu")).gpu
    assert gpu is not None
    assert all(map(plausible, (*gpu.products, *gpu.to_device, *gpu.to_host)))
    assert gpu.details["host_memory"] == "pageable"
    assert gpu.memory_mb > 0


def test_short_work_is_repeated_within_a_sample() -> None:
    calls = 0

    def work() -> None:
        nonlocal calls
        calls += 1

    found = timed(work, 0.01)
    assert calls > 100 * found.repetitions
    assert found.median_s < 1e-3


def test_long_work_is_repeated_three_times_whatever_the_budget() -> None:
    found = timed(lambda: time.sleep(0.006), 0)
    assert found.repetitions == 3
    assert found.median_s >= 0.006


def test_the_spread_is_the_middle_half_as_a_share_of_the_median() -> None:
    # Warm-up and first look, then samples of 10, 20 and 30 ms: quartiles at 15 and 25.
    naps = iter((0, 0.01, 0.01, 0.02, 0.03))
    found = timed(lambda: time.sleep(next(naps)), 0)
    assert found.repetitions == 3
    assert found.median_s >= 0.02
    assert found.spread > 0


def test_the_command_writes_a_profile_and_says_what_stays_assumed(tmp_path: Path) -> None:
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


def test_a_place_that_cannot_be_written_is_told_before_measuring(tmp_path: Path) -> None:
    for place, said in ((tmp_path, "is a folder"), (tmp_path / "no" / "it.json", "cannot be")):
        started = time.monotonic()
        result = CliRunner().invoke(app, ["profile", "--seconds", "60", "--out", str(place)])
        assert result.exit_code == 1
        assert said in result.stderr
        assert time.monotonic() - started < 20


def test_other_commands_do_not_load_torch_or_the_profiler() -> None:
    asked = (
        "import sys, services.cli.main; "
        "print([m for m in ('torch', 'services.lab.profiler') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
