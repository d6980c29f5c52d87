"""Measures this machine: matrix products by size, memory bandwidth, the GPU and its link."""

from __future__ import annotations

import gc
import os
import platform
import re
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from services.lab.experiments.provenance import cpu_model
from services.lab.profiling.gpu import Device, Work, find_device
from services.lab.profiling.hardware_profile import (
    VERSION,
    Cpu,
    Gpu,
    Machine,
    Product,
    Profile,
    Timing,
    Transfer,
)

# Short work is repeated until a sample is this long, so that reading the clock does not count.
SAMPLE_S = 0.005
FEWEST, MOST = 3, 30
THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
)  # fmt: skip

ReportProgress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to measure. `seconds` is a target: a measurement is always completed."""

    seconds: float = 20
    edges: tuple[int, ...] = (128, 256, 512, 1024, 2048, 4096)
    blocks_mb: tuple[float, ...] = (1, 4, 16, 64, 256)
    array_mb: float = 256
    caches: float = 4  # arrays have at least this many times the largest cache

    @classmethod
    def quick(cls, seconds: float = 3) -> Effort:
        return cls(seconds, edges=(256, 512, 1024), blocks_mb=(1, 16, 64), array_mb=128, caches=0)


def measure(
    effort: Effort,
    report: ReportProgress = lambda what, share: None,
    find: Callable[[], Device | None] = find_device,
) -> Profile:
    """The profile of this machine; `report` is called with the next step and the share done."""
    report("reading the machine's properties", 0)
    machine = _machine()
    device = find()
    steps = len(effort.edges) + 2
    if device is not None:
        steps += len(effort.edges) + 2 * len(effort.blocks_mb)
    clock = _Clock(effort.seconds, steps, report)
    cpu = Cpu(
        products=_products("CPU", _cpu_product, effort, clock), **_memory(machine, effort, clock)
    )
    gpu, problem = None, ""
    if device is not None:
        try:
            gpu = _gpu(device, effort, clock)
        except RuntimeError as error:  # raised by torch for memory, drivers and kernels
            problem = str(error).partition("\n")[0] or type(error).__name__
    report("done", 1)
    return Profile(
        version=VERSION,
        measured_at=datetime.now(UTC).replace(microsecond=0),
        dtype="float32",
        machine=machine,
        cpu=cpu,
        gpu=gpu,
        gpu_problem=problem,
    )


class _Clock:
    """Divides the remaining time among the remaining measurements."""

    def __init__(self, seconds: float, steps: int, report: ReportProgress) -> None:
        self._end = time.perf_counter() + seconds
        self._steps, self._left = steps, steps
        self._report = report

    def timed(self, what: str, prepare: Callable[[], Work]) -> Timing:
        self._report(what, 1 - self._left / self._steps)
        share = max(self._end - time.perf_counter(), 0) / self._left
        self._left -= 1
        return timed(prepare(), share)


def timed(work: Work, seconds: float) -> Timing:
    """Median and spread of one call, over as many samples as the time allows (at least three)."""
    end = time.perf_counter() + seconds
    work()  # the first call starts threads and fills caches
    once = _sample(work, 1)
    calls = max(1, round(SAMPLE_S / once))
    samples: list[float] = []
    while len(samples) < FEWEST or (len(samples) < MOST and time.perf_counter() < end):
        samples.append(_sample(work, calls))
    low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
    return Timing(repetitions=len(samples), median_s=median, spread=(high - low) / median)


def _sample(work: Work, calls: int) -> float:
    collected = gc.isenabled()
    gc.disable()
    try:
        started = time.perf_counter()
        for _ in range(calls):
            work()
        # The clocks of some systems have a coarser resolution than a short call.
        return max((time.perf_counter() - started) / calls, 1e-9)
    finally:
        if collected:
            gc.enable()


def _products(
    where: str, product: Callable[[int], Work], effort: Effort, clock: _Clock
) -> tuple[Product, ...]:
    products = []
    for edge in effort.edges:
        timing = clock.timed(f"{where}: product of edge {edge}", partial(product, edge))
        products.append(Product(edge=edge, **timing.model_dump()))
    return tuple(products)


def _cpu_product(edge: int) -> Work:
    random = np.random.default_rng(edge)
    left, right = (random.random((edge, edge), dtype=np.float32) for _ in range(2))
    out = np.empty_like(left)
    return lambda: np.matmul(left, right, out=out)


def _memory(machine: Machine, effort: Effort, clock: _Clock) -> dict[str, Transfer]:
    """Like STREAM: arrays much larger than the caches, a slice for each thread."""
    target_mb = max(effort.array_mb, effort.caches * machine.cache_mb)
    array_mb = min(target_mb, psutil.virtual_memory().available / 1e6 / 8)
    elements = int(array_mb * 1e6) // 8
    a, b, c = (np.full(elements, value) for value in (1.0, 2.0, 0.0))
    bounds = np.linspace(0, elements, machine.threads + 1, dtype=int)
    slices = [slice(start, stop) for start, stop in pairwise(bounds)]
    with ThreadPoolExecutor(machine.threads) as pool:

        def copy() -> object:
            return list(pool.map(lambda part: np.copyto(b[part], a[part]), slices))

        def add() -> object:
            return list(pool.map(lambda part: np.add(a[part], b[part], out=c[part]), slices))

        moved = elements * 8 / 1e6
        return {
            "copy": _transfer(2 * moved, clock.timed("memory: copy", lambda: copy)),
            "add": _transfer(3 * moved, clock.timed("memory: add", lambda: add)),
        }


def _gpu(device: Device, effort: Effort, clock: _Clock) -> Gpu:
    def transfers(where: str, prepare: Callable[[float], Work]) -> tuple[Transfer, ...]:
        return tuple(
            _transfer(mb, clock.timed(f"{where}: {mb:g} MB", partial(prepare, mb)))
            for mb in effort.blocks_mb
        )

    return Gpu(
        backend=device.backend,
        name=device.name,
        count=device.count,
        memory_mb=device.memory_mb,
        details=device.details,
        products=_products("GPU", device.product, effort, clock),
        to_device=transfers("to the GPU", device.to_device),
        to_host=transfers("from the GPU", device.to_host),
    )


def _transfer(mb: float, timing: Timing) -> Transfer:
    return Transfer(mb=mb, **timing.model_dump())


def _machine() -> Machine:
    # The matrix library of numpy; other libraries may be loaded as well.
    pools: list[dict[str, Any]] = [p for p in threadpool_info() if p["user_api"] == "blas"]
    own = next((p for p in pools if "numpy" in str(p.get("filepath"))), pools[0] if pools else {})
    cores = psutil.cpu_count() or 1
    blas = (own.get("internal_api"), own.get("version"), own.get("architecture"))
    return Machine(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpu=cpu_model(),
        cores=cores,
        memory_mb=round(psutil.virtual_memory().total / 1e6),
        cache_mb=_cache_mb(),
        threads=own.get("num_threads") or cores,
        blas=" ".join(str(part) for part in blas if part) or "unknown",
        versions={"python": platform.python_version(), "numpy": version("numpy")},
        environment={name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
        busy_before=psutil.cpu_percent(interval=0.3) / 100,
    )


def _cache_mb() -> float:
    """The largest cache of the first core; 0 where the system does not report it."""
    sizes = [0.0]
    for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        if size := re.fullmatch(r"(\d+)([KMG]?)", file.read_text().strip()):
            sizes.append(int(size[1]) * 1024 ** " KMG".index(size[2] or " ") / 1e6)
    return round(max(sizes), 1)
